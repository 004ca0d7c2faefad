package fib

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// routersState returns a state with the networks red, which routes, and wire, which bridges. Both have a port
// on node a, and red has one on node b.
func routersState() model.State {
	addr := netip.MustParseAddr
	return model.State{
		Nodes: []model.Node{
			{Name: "a", Underlay: []netip.Addr{addr("192.0.2.1")}, Encapsulations: []model.Encapsulation{model.VXLAN, model.MPLSoUDP}, BGP: &model.BGP{ASN: 64512, RouterID: addr("192.0.2.1")}},
			{Name: "b", Underlay: []netip.Addr{addr("192.0.2.2")}, Encapsulations: []model.Encapsulation{model.VXLAN}},
		},
		Networks: []model.Network{
			{Name: "red", ID: 1, Subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Import: []model.RouteTarget{{0, 2, 7: 1}}},
			{Name: "wire", ID: 2, Forwarding: model.L2},
		},
		Ports: []model.Port{
			{Name: "x", Network: "red", Node: "a", MAC: model.MAC{2, 5: 1}, IPs: []netip.Addr{addr("10.1.0.1").Next()}, Attach: model.Attachment{Device: "x"}},
			{Name: "w", Network: "wire", Node: "a", MAC: model.MAC{2, 5: 2}, Attach: model.Attachment{Device: "w"}},
			{Name: "y", Network: "red", Node: "b", MAC: model.MAC{2, 5: 3}, IPs: []netip.Addr{addr("10.1.0.9")}, Attach: model.Attachment{Device: "y"}},
		},
		Routes: []model.Route{{Network: "red", Prefix: netip.MustParsePrefix("10.8.0.0/16"), Discard: true}},
	}
}

// by returns a next hop.
func by(address string, e model.Encapsulation, label uint32) ExternalVia {
	return ExternalVia{Endpoint{Address: netip.MustParseAddr(address), Encapsulation: e}, label}
}

// to returns a route of network red.
func to(prefix string, via ...ExternalVia) ExternalRoute {
	return externalTo("red", netip.MustParsePrefix(prefix), model.MAC{}, via...)
}

func externalTo(network string, p netip.Prefix, mac model.MAC, via ...ExternalVia) ExternalRoute {
	return ExternalRoute{ExternalDestination: ExternalDestination{network, p, mac}, Via: via}
}

// compileRouters returns node a's tables with external routes, and the warnings.
func compileRouters(t *testing.T, x *External, way func(a, b netip.Addr) ([]layout.Path, int)) (Tables, []string) {
	t.Helper()
	return compileRoutersOf(t, routersState(), x, way)
}

func compileRoutersOf(t *testing.T, s model.State, x *External, way func(a, b netip.Addr) ([]layout.Path, int)) (Tables, []string) {
	t.Helper()
	s = s.WithDefaults()
	facts := factsFor(s, "a", nil)
	facts.External = x
	if way != nil {
		facts.Way = way
	}
	tables, warnings, err := compile(s, "a", facts, &IDs{})
	must.Succeed(t, err)
	return tables, warnings
}

func TestExternalRoutesUseTheirRouters(t *testing.T) {
	one, two := by("192.0.2.253", model.VXLAN, 5001), by("192.0.2.254", model.MPLSoUDP, 300)
	one.RouterMAC = model.MAC{2, 5: 7}
	tables, warnings := compileRouters(t, &External{
		Routes: []ExternalRoute{
			to("10.9.0.0/16", one), to("10.10.0.0/16", one, two), to("10.11.0.0/16", one, two),
			externalTo("wire", netip.Prefix{}, model.MAC{2, 5: 9}, by("192.0.2.253", model.VXLAN, 6001)),
			externalTo("wire", netip.Prefix{}, model.MAC{}, by("192.0.2.253", model.VXLAN, 6001), by("192.0.2.254", model.MPLSoUDP, 301)),
			externalTo("elsewhere", netip.MustParsePrefix("10.9.0.0/16"), model.MAC{}, one),
		},
	}, nil)
	if len(warnings) > 0 {
		t.Errorf("the warnings are %q, want none", warnings)
	}
	r := tables.Routes[RouteKey{1, netip.MustParsePrefix("10.9.0.0/16")}]
	if n := tables.Nexthops[r.Nexthop]; n.Type != layout.Tunnel || n.Flags&layout.NexthopNAT == 0 || n.Encapsulation() != model.VXLAN || n.DMAC != one.RouterMAC || n.Path[0].Destination.Addr() != one.Address || r.Label != 5001 {
		t.Errorf("the route to 10.9.0.0/16 is %+v with nexthop %+v, want a VXLAN tunnel to %s with VNI 5001", r, n, one.Address)
	}
	r = tables.Routes[RouteKey{1, netip.MustParsePrefix("10.10.0.0/16")}]
	n := tables.nexthop(r.Nexthop)
	var labels []uint32
	for _, m := range n.Members {
		labels = append(labels, m.Label)
	}
	if n.Type != layout.Composite || !slices.Equal(labels, []uint32{5001, 300}) || r != tables.Routes[RouteKey{1, netip.MustParsePrefix("10.11.0.0/16")}] {
		t.Errorf("the route to 10.10.0.0/16 is %+v with nexthop %+v, want a composite with the labels 5001 and 300, as of 10.11.0.0/16", r, n)
	}
	b := tables.Bridge[layout.BridgeKey{VRF: 2, MAC: model.MAC{2, 5: 9}}]
	if n := tables.Nexthops[b.Nexthop]; n.DMAC != model.RouterMAC || n.Path[0].Destination.Addr() != one.Address || b.Label != 6001 {
		t.Errorf("the bridge entry is %+v with nexthop %+v, want a tunnel to %s with VNI 6001", b, n, one.Address)
	}
	if flood := tables.nexthop(tables.VRFs[2].Flood); len(flood.Members) != 3 { // the port w, and two routers
		t.Errorf("broadcast goes to %+v, want the port and both routers", flood.Members)
	}
	first, second := tables.Remotes[layout.AddressOf(one.Address)], tables.Remotes[layout.AddressOf(two.Address)]
	if !first.Accepts(model.VXLAN) || !first.Accepts(model.MPLSoUDP) || first.ID == second.ID || tables.Nexthops[r.Nexthop].Remote == first.ID {
		t.Errorf("the routers' remotes are %+v and %+v; want different ids, and VXLAN and MPLSoUDP accepted from the first", first, second)
	}
	for id, n := range tables.Nexthops {
		if n.Type == layout.Tunnel && n.Path[0].Destination.Addr() == one.Address && n.Remote != first.ID {
			t.Errorf("the tunnel %s has remote %d, want %d", tables.Names[id], n.Remote, first.ID)
		}
	}
	if s := tables.Senders[layout.SenderOf(1, first.ID, netip.Prefix{})]; s.Known == 0 {
		t.Error("packets of the router into network red are not accepted")
	}
	if tables.VRFs[1].RouterMAC != (model.MAC{2, 0, 192, 0, 2, 1}) || tables.VRFs[2].RouterMAC != model.RouterMAC {
		t.Errorf("the router MAC addresses of red and wire are %s and %s, want that of the node and %s", tables.VRFs[1].RouterMAC, tables.VRFs[2].RouterMAC, model.RouterMAC)
	}
}

func TestTheFleetsRoutesOverrideExternalOnes(t *testing.T) {
	via := by("192.0.2.254", model.MPLSoUDP, 300)
	plain, _ := compileRouters(t, nil, nil)
	tables, warnings := compileRouters(t, &External{Routes: []ExternalRoute{
		to("10.8.0.0/16", via), to("10.1.0.2/32", via), to("10.1.0.9/32", via), to("10.1.0.1/32", via), to("10.1.0.7/32", via),
		externalTo("wire", netip.Prefix{}, model.MAC{2, 5: 2}, via),
	}}, nil)
	for _, p := range []string{"10.8.0.0/16", "10.1.0.2/32", "10.1.0.1/32", "10.1.0.9/32"} {
		key := RouteKey{1, netip.MustParsePrefix(p)}
		if got, want := tables.Names[tables.Routes[key].Nexthop], plain.Names[plain.Routes[key].Nexthop]; got != want {
			t.Errorf("the route to %s leads to %q, want %q", p, got, want)
		}
	}
	if r := tables.Routes[RouteKey{1, netip.MustParsePrefix("10.1.0.7/32")}]; r.Label != 300 {
		t.Errorf("the route to 10.1.0.7, which no port has, is %+v, want label 300", r)
	}
	for _, want := range []string{
		`the BGP route to 10.8.0.0/16 in network "red" by 192.0.2.254 is not used: the fleet has a route to the same prefix`,
		`the BGP route to 10.1.0.9/32 in network "red" by 192.0.2.254 is not used: port "y" has the address`,
		`the BGP route to 02:00:00:00:00:02 in network "wire" by 192.0.2.254 is not used: port "w" has the address`,
	} {
		if !slices.Contains(warnings, want) {
			t.Errorf("the warnings are %q, want one that is %q", warnings, want)
		}
	}
}

// The subnets of a network, and of the networks whose routes it imports, come before routes of other routers to the same
// prefix or to a part of it. Routes to single addresses without a port, and to shorter prefixes, are used.
func TestSubnetsOverrideExternalRoutes(t *testing.T) {
	s := routersState()
	target := model.RouteTarget{0, 2, 7: 2}
	s.Networks[0].Import = append(s.Networks[0].Import, target)
	s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 3, Subnets: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd02::/64")}, Export: []model.RouteTarget{target}})
	s.Ports = append(s.Ports, model.Port{Name: "z", Network: "blue", Node: "b", MAC: model.MAC{2, 5: 4}, IPs: []netip.Addr{netip.MustParseAddr("10.2.0.9")}, Attach: model.Attachment{Device: "z"}})
	ignored, used := map[string]string{
		"10.1.0.0/16": `network "red" has the subnet 10.1.0.0/16`, "10.1.4.0/24": `network "red" has the subnet 10.1.0.0/16`,
		"10.2.0.0/16": `network "blue" has the subnet 10.2.0.0/16`, "10.2.8.0/31": `network "blue" has the subnet 10.2.0.0/16`,
		"10.2.0.9/32": `port "z" has the address`, "fd02::/64": `network "blue" has the subnet fd02::/64`, "fd02::8/127": `network "blue" has the subnet fd02::/64`,
	}, []string{"10.0.0.0/8", "0.0.0.0/0", "10.1.0.77/32", "10.2.0.77/32", "::/0", "fd02::/48", "fd02::77/128"}
	for _, e := range []model.Encapsulation{model.MPLSoUDP, model.MPLSoGRE, model.VXLAN} {
		via := by("192.0.2.254", e, 300)
		x := &External{}
		for p := range ignored {
			x.Routes = append(x.Routes, to(p, via))
		}
		for _, p := range used {
			x.Routes = append(x.Routes, to(p, via))
		}
		tables, warnings := compileRoutersOf(t, s, x, nil)
		for p, why := range ignored {
			if r := tables.Routes[RouteKey{1, netip.MustParsePrefix(p)}]; r.Label == 300 {
				t.Errorf("the route of the router to %s is used, want it ignored: %s", p, why)
			}
			if text := strings.Join(warnings, "\n"); !strings.Contains(text, "the BGP route to "+p+` in network "red" by 192.0.2.254 is not used: `+why) {
				t.Errorf("the warnings are %s; want one that says of %s: %s", text, p, why)
			}
		}
		for _, p := range used {
			if r := tables.Routes[RouteKey{1, netip.MustParsePrefix(p)}]; r.Label != 300 {
				t.Errorf("the route to %s is %+v, want that of the router", p, r)
			}
		}
	}
}

// A route leaves out the routers that are not reachable. If none is reachable, there is no route.
func TestUnreachableRoutersAreLeftOut(t *testing.T) {
	far := netip.MustParseAddr("203.0.113.9")
	way := func(a, b netip.Addr) ([]layout.Path, int) {
		if b == far {
			return nil, 0
		}
		return onLink(a, b)
	}
	tables, warnings := compileRouters(t, &External{Routes: []ExternalRoute{
		to("10.9.0.0/16", by("203.0.113.9", model.MPLSoUDP, 300), by("192.0.2.254", model.MPLSoUDP, 301)),
		to("10.10.0.0/16", by("203.0.113.9", model.MPLSoUDP, 300)), to("10.11.0.0/16", by("fd00::9", model.MPLSoUDP, 300)),
	}}, way)
	if r := tables.Routes[RouteKey{1, netip.MustParsePrefix("10.9.0.0/16")}]; r.Label != 301 {
		t.Errorf("the route to 10.9.0.0/16 is %+v, want the reachable router with label 301", r)
	}
	for _, p := range []string{"10.10.0.0/16", "10.11.0.0/16"} {
		if r, has := tables.Routes[RouteKey{1, netip.MustParsePrefix(p)}]; has {
			t.Errorf("the route to %s is %+v, want none: its router is not reachable", p, r)
		}
	}
	if text := strings.Join(warnings, "\n"); !strings.Contains(text, "router 203.0.113.9: there is no way") || !strings.Contains(text, "router fd00::9 is not reachable") {
		t.Errorf("the warnings are %s; want one for each router that is not reachable", text)
	}
}

// The MTU of workloads does not change when routers announce routes.
func TestNetworksThatImportLeaveRoomForTunnels(t *testing.T) {
	without, _ := compileRouters(t, nil, nil)
	with, _ := compileRouters(t, &External{Routes: []ExternalRoute{to("10.9.0.0/16", by("192.0.2.254", model.VXLAN, 5001))}}, nil)
	for index, v := range without.Vifs {
		if with.Vifs[index].MTU != v.MTU || v.MTU > 9000-50 {
			t.Errorf("the MTU of %s is %d without and %d with a route; want the same, at most 8950", without.Ports[index], v.MTU, with.Vifs[index].MTU)
		}
	}
}

// Routes are equal only if all their parts are.
func TestChangedExternalRoutesAreNotEqual(t *testing.T) {
	of := func(change func(*External)) *External {
		x := &External{Routes: []ExternalRoute{to("10.9.0.0/16", by("192.0.2.253", model.VXLAN, 5001))}}
		change(x)
		return x
	}
	same := of(func(*External) {})
	if !same.Equal(of(func(*External) {})) {
		t.Error("routes differ from a copy")
	}
	for name, change := range map[string]func(*External){
		"label":       func(x *External) { x.Routes[0].Via[0].Label++ },
		"router MAC":  func(x *External) { x.Routes[0].Via[0].RouterMAC[5]++ },
		"next hop":    func(x *External) { x.Routes[0].Via = nil },
		"prefix":      func(x *External) { x.Routes[0].Prefix = netip.Prefix{} },
		"MAC address": func(x *External) { x.Routes[0].MAC[5]++ },
		"network":     func(x *External) { x.Routes[0].Network = "wire" },
		"route":       func(x *External) { x.Routes = nil },
		"backup":      func(x *External) { x.Routes[0].Backups = []netip.Addr{{}} },
	} {
		if same.Equal(of(change)) {
			t.Errorf("routes with a different %s are equal", name)
		}
	}
}

// Without a router, routes that share its packets with another router take the other. Routes that have no other stay.
func TestTablesWithoutARouter(t *testing.T) {
	one, two := by("192.0.2.253", model.VXLAN, 5001), by("192.0.2.254", model.VXLAN, 5001)
	tables, _ := compileRouters(t, &External{
		Routes: []ExternalRoute{to("10.9.0.0/16", one, two), to("10.10.0.0/16", one)},
	}, nil)
	c := &Compiled{Tables: tables}
	for _, a := range []string{"192.0.2.1", "192.0.2.9"} { // the node itself, and an address that no router has
		if _, differs := c.Without(map[netip.Addr]bool{netip.MustParseAddr(a): true}); differs {
			t.Errorf("the tables differ without %s, which is not a router", a)
		}
	}
	without, differs := c.Without(map[netip.Addr]bool{one.Address: true})
	shared := tables.Routes[RouteKey{1, netip.MustParsePrefix("10.9.0.0/16")}].Nexthop
	before, after := tables.MembersOf(shared), without.MembersOf(shared)
	if !differs || len(before) != 2 || len(after) != 1 || without.Nexthops[after[0].Nexthop].Path[0].Destination.Addr() != two.Address {
		t.Errorf("without %s, the members %+v become %+v, want only %s", one.Address, before, after, two.Address)
	}
	if len(without.Routes) != len(tables.Routes) || len(without.Nexthops) != len(tables.Nexthops) {
		t.Errorf("there are %d routes and %d nexthops without a router, want %d and %d", len(without.Routes), len(without.Nexthops), len(tables.Routes), len(tables.Nexthops))
	}
	if _, differs := c.Without(map[netip.Addr]bool{one.Address: true, two.Address: true}); differs {
		t.Error("a route without any router that is left has lost its members")
	}
}
