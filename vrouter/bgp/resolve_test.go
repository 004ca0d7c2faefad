package bgp

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

var router = netip.MustParseAddr("10.0.0.254")

// testSite returns a node with the networks red (routes), wire (bridges) and both (routes and bridges).
func testSite() Site {
	node := model.Node{
		Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Encapsulations: model.DefaultEncapsulations,
		BGP: &model.BGP{ASN: 64512, RouterID: netip.MustParseAddr("10.0.0.1"), Neighbors: []model.Neighbor{{Address: router}}},
	}
	other := model.Node{Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("10.0.0.2")}}
	network := func(name string, id uint32, f model.Forwarding, targets ...string) model.Network {
		n := model.Network{Name: name, ID: id, VNI: id, Forwarding: f}
		for _, text := range targets {
			n.Import = append(n.Import, target(text))
		}
		return n
	}
	return Site{Node: node, Nodes: []model.Node{node, other}, Networks: []model.Network{
		network("red", 1, model.L3, "64512:1"), network("wire", 2, model.L2, "64512:2"), network("both", 3, model.L2L3, "64512:3"),
	}}
}

// path returns a path of the neighbour to a prefix, with the target of network red. change edits it.
func path(to string, change func(*Path)) Path {
	p := Path{
		Family: model.VPNv4, Kind: VPN, Prefix: netip.MustParsePrefix(to), NextHop: router, Neighbor: router, Label: 100, LocalPref: 100,
		Targets: []model.RouteTarget{target("64512:1")}, Tunnels: []bgp.TunnelType{bgp.TUNNEL_TYPE_MPLS_IN_UDP},
	}
	if change != nil {
		change(&p)
	}
	return p
}

// station turns a path into a path to a MAC address of network wire.
func station(p *Path) {
	p.Family, p.Kind, p.Prefix, p.MAC = model.EVPN, Station, netip.Prefix{}, model.MAC{2, 0, 0, 0, 0, 9}
	p.Tunnels, p.Targets = []bgp.TunnelType{bgp.TUNNEL_TYPE_VXLAN}, []model.RouteTarget{target("64512:2")}
}

// A fleet that imports a target of another fleet uses exactly the routes of the ports that export it, with
// the label or VNI that the exporting node expects.
func TestAFleetImportsTheRoutesThatAnotherExports(t *testing.T) {
	routes := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 39))
		s := exporting(r)
		var paths []Path
		for _, p := range announced(s) {
			paths = append(paths, overWire(t, p, s.Nodes[0].Underlay[0]))
		}
		r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		site := testSite()
		site.Node.Encapsulations = slices.Clone(s.Nodes[0].Encapsulations)
		site.Node.Underlay = []netip.Addr{netip.MustParseAddr("10.99.0.1"), netip.MustParseAddr("fd99::1")}
		site.Nodes, site.Networks = []model.Node{site.Node}, slices.Clone(s.Networks)
		for i := range site.Networks {
			site.Networks[i].Import, site.Networks[i].Export = site.Networks[i].Export[:1], nil
		}
		got, _ := site.Resolve(paths)
		want := expected(s)
		if diff := gocmp.Diff(want, plain(got.Routes)); diff != "" {
			t.Fatalf("seed %d: the routes that the other fleet imports differ (-want +got):\n%s", seed, diff)
		}
		routes += len(want)
	}
	if routes < 500 {
		t.Errorf("the random states have only %d routes, want at least 500", routes)
	}
}

// plain returns routes as text, one line for each next hop.
func plain(routes []fib.ExternalRoute) (all []string) {
	for _, r := range routes {
		for _, v := range r.Via {
			all = append(all, fmt.Sprint(r.Network, " ", r.Prefix, " ", r.MAC, " via ", v.Address, " ", v.Encapsulation, " ", v.RouterMAC, " ", v.Label))
		}
	}
	slices.Sort(all)
	return all
}

// expected returns the routes to the ports of the first node. It is an independent implementation of Export
// and Resolve for two nodes that prefer their encapsulations in the same order.
func expected(s model.State) (all []string) {
	n := s.Nodes[0]
	tunnels := n.Tunnels()
	add := func(network model.Network, prefix netip.Prefix, mac model.MAC) {
		ethernet := !prefix.IsValid()
		for _, e := range tunnels {
			// Prefixes of networks that bridge have MPLS labels. EVPN paths announce only VXLAN if the node
			// offers it.
			if e == model.VXLAN && !ethernet && network.Bridges() || e != model.VXLAN && ethernet && slices.Contains(tunnels, model.VXLAN) {
				continue
			}
			v := fib.ExternalVia{Endpoint: fib.Endpoint{Address: nextHopOf(n), Encapsulation: e}, Label: network.Label()}
			switch {
			case e == model.VXLAN:
				v.Label = network.VNI
				if !ethernet {
					v.RouterMAC = n.RouterMAC()
				}
			case ethernet:
				v.Label = network.EthernetLabel()
			}
			all = append(all, plain([]fib.ExternalRoute{{ExternalDestination: destination{Network: network.Name, Prefix: prefix, MAC: mac}, Via: []fib.ExternalVia{v}}})...)
			return
		}
	}
	for _, network := range s.Networks {
		here := false
		for _, p := range s.Ports {
			if p.Network != network.Name || p.Node != n.Name {
				continue
			}
			here = true
			for _, a := range p.IPs {
				if network.Routes() {
					add(network, netip.PrefixFrom(a, a.BitLen()), model.MAC{})
				}
			}
			if network.Bridges() {
				add(network, netip.Prefix{}, p.MAC)
			}
		}
		if here && network.Bridges() {
			add(network, netip.Prefix{}, model.MAC{})
		}
		for _, r := range s.Routes {
			if r.Network == network.Name && network.Routes() && slices.ContainsFunc(r.Via, func(v model.Via) bool {
				p, has := s.Port(v.Port)
				return has && p.Node == n.Name
			}) {
				add(network, r.Prefix.Masked(), model.MAC{})
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestUnusablePathsHaveAReason(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Path)
		why    string // "": it is used
	}{
		{"a usable path", nil, ""},
		{"no importer", func(p *Path) { p.Targets = []model.RouteTarget{target("64512:9"), target("1.2.3.4:5")} }, "no network with ports on this node imports 64512:9, 1.2.3.4:5"},
		{"no targets", func(p *Path) { p.Targets = nil }, "no network with ports on this node imports none"},
		{"an unknown encapsulation", func(p *Path) { p.Tunnels = []bgp.TunnelType{bgp.TUNNEL_TYPE_NVGRE} }, "its encapsulation is tunnel type 9 (nvgre), but for such routes this node offers mpls-udp, mpls-gre"},
		{"VXLAN for a label", func(p *Path) { p.Tunnels = []bgp.TunnelType{bgp.TUNNEL_TYPE_VXLAN} }, "its encapsulation is vxlan, but for such routes this node offers mpls-udp, mpls-gre"},
		{"a reserved label", func(p *Path) { p.Label = 3 }, "its label 3 is not from 16 to 1048575"},
		{"a large label", func(p *Path) { p.Label = 1 << 20 }, "its label 1048576 is not from 16 to 1048575"},
		{"a VNI of 0", func(p *Path) { station(p); p.Label = 0 }, "its VNI is 0"},
		{"a label of EVPN in the wrong bits", func(p *Path) {
			station(p)
			p.Tunnels = []bgp.TunnelType{bgp.TUNNEL_TYPE_MPLS_IN_GRE}
		}, "its label 6 is not from 16 to 1048575"},
		{"a node of the fleet", func(p *Path) { p.NextHop = netip.MustParseAddr("10.0.0.2") }, "its next hop is node b of this fleet, whose routes come from the store"},
		{"another family", func(p *Path) { p.NextHop = netip.MustParseAddr("fd00::9") }, "this node has no underlay address of the family of its next hop fd00::9"},
		{"an unreachable next hop", func(p *Path) { p.NextHop = netip.MustParseAddr("10.7.7.7") }, "its next hop 10.7.7.7 is not reachable: no route from 10.0.0.1 to 10.7.7.7"},
		{"a prefix for a network that bridges", func(p *Path) { p.Targets = []model.RouteTarget{target("64512:2")} }, "network wire only bridges"},
		{"a station for a network that routes", func(p *Path) { station(p); p.Targets = []model.RouteTarget{target("64512:1")} }, "network red only routes"},
		{"the router's MAC address", func(p *Path) { station(p); p.MAC = model.RouterMAC }, "00:00:5e:00:01:00 is not the MAC address of a station"},
		{"a multicast MAC address", func(p *Path) { station(p); p.MAC[0] = 3 }, "03:00:00:00:00:09 is not the MAC address of a station"},
		{"a reason of fromWire", func(p *Path) { p.Unusable = "its Ethernet tag is 5" }, "its Ethernet tag is 5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			site := testSite()
			site.Unreachable = func(a netip.Addr) string {
				if a == netip.MustParseAddr("10.7.7.7") {
					return "no route from 10.0.0.1 to 10.7.7.7"
				}
				return ""
			}
			x, verdicts := site.Resolve([]Path{path("10.9.0.0/16", test.change)})
			state := Unused
			if test.why == "" {
				state = Used
			}
			if v := verdicts[0]; v.Why != test.why || v.State != state || len(x.Routes) != len(v.Networks) {
				t.Errorf("the path is %s for the reason %q, and there are %d routes; want %s for the reason %q", v.State, v.Why, len(x.Routes), state, test.why)
			}
		})
	}
}

// A node uses the best paths to a destination together. Other paths are backups, and their routers may send
// packets too.
func TestTheBestPathsAreUsedTogether(t *testing.T) {
	by := func(last byte, change func(*Path)) Path {
		return path("10.9.0.0/16", func(p *Path) {
			p.NextHop = netip.AddrFrom4([4]byte{10, 0, 1, last})
			p.RD = model.RouteDistinguisher{0, 1, 10, 0, 1, last, 0, 1}
			if change != nil {
				change(p)
			}
		})
	}
	for name, worse := range map[string]func(*Path){
		"local preference": func(p *Path) { p.LocalPref = 99 },
		"AS path":          func(p *Path) { p.ASPath = 1 },
		"origin":           func(p *Path) { p.Source = 1 },
		"MED":              func(p *Path) { p.MED = 1 },
	} {
		x, verdicts := testSite().Resolve([]Path{by(1, worse), by(2, nil), by(3, nil)})
		if len(x.Routes) != 1 || len(x.Routes[0].Via) != 2 || x.Routes[0].Via[0].Address != verdicts[1].NextHop || x.Routes[0].Via[1].Address != verdicts[2].NextHop {
			t.Errorf("%s: the routes are %+v, want one by the two better paths", name, x.Routes)
		}
		if v := verdicts[0]; v.State != Backup || v.Why != "the path by 10.0.1.2 is better" || verdicts[1].State != Used || verdicts[1].Why != "" {
			t.Errorf("%s: the verdicts are %+v, want a backup and two used paths", name, verdicts)
		}
		if len(x.Senders()) != 3 {
			t.Errorf("%s: the senders are %+v, want all three routers", name, x.Senders())
		}
	}
	x, verdicts := testSite().Resolve([]Path{by(1, func(p *Path) { p.LongLivedStale, p.LocalPref = true, 200 }), by(2, nil)})
	if v := verdicts[0]; len(x.Routes) != 1 || len(x.Routes[0].Via) != 1 || x.Routes[0].Via[0].Address != verdicts[1].NextHop || v.State != Backup || !strings.Contains(v.Why, "LLGR_STALE") {
		t.Errorf("the routes are %+v, with the verdicts %+v; want one by the path that is not stale", x.Routes, verdicts)
	}
	x, _ = testSite().Resolve([]Path{by(1, func(p *Path) { p.LongLivedStale = true }), by(2, func(p *Path) { p.LongLivedStale = true })})
	if len(x.Routes) != 1 || len(x.Routes[0].Via) != 2 {
		t.Errorf("the routes are %+v, want one by the two stale paths", x.Routes)
	}
	var many []Path
	for i := range byte(model.MaxECMP + 2) {
		many = append(many, by(i+1, nil))
	}
	x, verdicts = testSite().Resolve(many)
	if len(x.Routes[0].Via) != model.MaxECMP || verdicts[model.MaxECMP+1].State != Backup || !strings.Contains(verdicts[model.MaxECMP+1].Why, "the route already uses 16 equal paths, its maximum") {
		t.Errorf("of %d equal paths the node uses %d, want %d; the verdict of the last is %+v", len(many), len(x.Routes[0].Via), model.MaxECMP, verdicts[model.MaxECMP+1])
	}
	// Two reflectors announce the same path.
	twice := []Path{by(1, nil), by(1, func(p *Path) { p.Neighbor = netip.MustParseAddr("10.0.0.253") })}
	if x, verdicts := testSite().Resolve(twice); len(x.Routes[0].Via) != 1 || verdicts[1].State != Used {
		t.Errorf("the same path from two neighbours is the route %+v, and the second path is %s; want one next hop, and both paths used", x.Routes, verdicts[1].State)
	}
}

// Each network chooses among the paths that it imports: a path can be used in one network and be a
// backup in another.
func TestEachNetworkChoosesItsOwnPaths(t *testing.T) {
	site := testSite()
	blue := site.Networks[0]
	blue.Name, blue.ID, blue.Import = "blue", 4, []model.RouteTarget{target("64512:4")}
	red := &site.Networks[0]
	red.Import = append(red.Import, blue.Import...)
	site.Networks = append(site.Networks, blue)
	shared := path("10.9.0.0/16", func(p *Path) { p.Targets = blue.Import })
	best := path("10.9.0.0/16", func(p *Path) { p.NextHop, p.LocalPref, p.Label = router.Next(), 200, 200 })
	x, verdicts := site.Resolve([]Path{shared, best})
	want := []string{
		"blue 10.9.0.0/16 00:00:00:00:00:00 via 10.0.0.254 mpls-udp 00:00:00:00:00:00 100",
		"red 10.9.0.0/16 00:00:00:00:00:00 via 10.0.0.255 mpls-udp 00:00:00:00:00:00 200",
	}
	must.Equal(t, want, plain(x.Routes))
	if v := verdicts[0]; v.State != Used || v.Why != "" {
		t.Errorf("the path that only network blue uses is %s: %q, want %s without a reason", v.State, v.Why, Used)
	}
}

// A router announces one path with the route targets of a network that bridges and of one that routes
// (RFC 9135). Each network gets its label: the first bridges, the second routes.
func TestAStationOfABridgingAndARoutingNetworkHasTwoLabels(t *testing.T) {
	for tunnel, shift := range map[bgp.TunnelType]int{bgp.TUNNEL_TYPE_VXLAN: 0, bgp.TUNNEL_TYPE_MPLS_IN_UDP: labelShift} {
		p := path("0.0.0.0/0", func(p *Path) {
			station(p)
			p.Tunnels = []bgp.TunnelType{tunnel}
			p.Prefix, p.Label, p.RoutedLabel = netip.MustParsePrefix("10.9.0.5/32"), 2002<<shift, 1001<<shift
			p.Targets = []model.RouteTarget{target("64512:1"), target("64512:2")}
		})
		x, _ := testSite().Resolve([]Path{p})
		e := encapsulationOf(tunnel)
		want := []string{
			fmt.Sprintf("red 10.9.0.5/32 00:00:00:00:00:00 via 10.0.0.254 %s 00:00:00:00:00:00 1001", e),
			fmt.Sprintf("wire invalid Prefix 02:00:00:00:00:09 via 10.0.0.254 %s 00:00:00:00:00:00 2002", e),
		}
		if diff := gocmp.Diff(want, plain(x.Routes)); diff != "" {
			t.Errorf("%s: the routes differ (-want +got):\n%s", e, diff)
		}
	}
}

// All routers get copies of broadcast. A network that routes sends with the second label of a station.
func TestEVPNRoutesOfOtherRouters(t *testing.T) {
	multicast := func(last byte) Path {
		return path("0.0.0.0/0", func(p *Path) {
			station(p)
			p.Kind, p.MAC, p.Label, p.Origin = Multicast, model.MAC{}, 2, netip.AddrFrom4([4]byte{10, 0, 1, last})
			p.NextHop, p.LocalPref = p.Origin, 100+uint32(last)
		})
	}
	routed := path("0.0.0.0/0", func(p *Path) {
		station(p)
		p.Prefix, p.Label, p.RoutedLabel = netip.MustParsePrefix("10.9.0.5/32"), 2, 1
		p.RouterMAC, p.Targets = model.MAC{2, 0, 0, 0, 7, 7}, []model.RouteTarget{target("64512:1")}
	})
	x, _ := testSite().Resolve([]Path{multicast(1), multicast(2), routed})
	got := plain(x.Routes)
	want := []string{
		"red 10.9.0.5/32 00:00:00:00:00:00 via 10.0.0.254 vxlan 02:00:00:00:07:07 1",
		"wire invalid Prefix 00:00:00:00:00:00 via 10.0.1.1 vxlan 00:00:00:00:00:00 2",
		"wire invalid Prefix 00:00:00:00:00:00 via 10.0.1.2 vxlan 00:00:00:00:00:00 2",
	}
	must.Equal(t, want, got)
}

// The encapsulation of a neighbour's configuration applies to paths that announce none.
func TestPathsWithoutAnEncapsulationUseThatOfTheNeighbor(t *testing.T) {
	for set, want := range map[model.Encapsulation]model.Encapsulation{"": model.MPLSoUDP, model.MPLSoGRE: model.MPLSoGRE} {
		site := testSite()
		site.Node.BGP.Neighbors[0].Encapsulation = set
		x, _ := site.Resolve([]Path{path("10.9.0.0/16", func(p *Path) { p.Tunnels = nil })})
		if got := x.Routes[0].Via[0].Encapsulation; got != want {
			t.Errorf("with %q in the configuration of the neighbour, the encapsulation is %s, want %s", set, got, want)
		}
	}
}

// A node does not use more routes than MaxRoutes, even if its neighbours announce more.
func TestRoutesAboveTheLimitAreNotUsed(t *testing.T) {
	var paths []Path
	for i := range 10 {
		paths = append(paths, path(fmt.Sprintf("10.9.%d.0/24", i), nil))
	}
	site := testSite()
	site.MaxRoutes = 7
	x, verdicts := site.Resolve(paths)
	unused := slices.DeleteFunc(slices.Clone(verdicts), func(v Verdict) bool { return v.State == Used })
	if len(x.Routes) != 7 || len(unused) != 3 || !strings.Contains(unused[0].Why, "already uses 7 routes") {
		t.Errorf("the node uses %d routes, want 7, and does not use %d paths, want 3: %+v", len(x.Routes), len(unused), unused)
	}
}

// Above the limit, neighbours get the same number of routes. A neighbour with few routes keeps all of them.
func TestANeighborWithVeryManyRoutesLeavesRoomForOthers(t *testing.T) {
	var paths []Path
	for i := range 20 {
		paths = append(paths, path(fmt.Sprintf("10.9.%d.0/24", i), nil))
	}
	other := netip.MustParseAddr("10.0.0.253")
	for i := range 3 {
		paths = append(paths, path(fmt.Sprintf("10.99.%d.0/24", i), func(p *Path) { p.Neighbor, p.NextHop = other, other }))
	}
	site := testSite()
	site.MaxRoutes = 7
	x, verdicts := site.Resolve(paths)
	used := map[netip.Addr]int{}
	for _, v := range verdicts {
		used[v.Neighbor] += toInt(v.State == Used)
	}
	if used[router] != 4 || used[other] != 3 || len(x.Routes) != 7 || !slices.IsSortedFunc(x.Routes, func(a, b fib.ExternalRoute) int { return a.Prefix.Compare(b.Prefix) }) {
		t.Errorf("the node uses %v paths of the neighbours in the routes %+v, want 4 and 3, sorted", used, x.Routes)
	}
}

// The result does not depend on the order in which the paths arrived.
func TestTheOrderOfPathsDoesNotMatter(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 40))
		table := newTable(nil)
		for range 30 {
			table.Put(path(fmt.Sprintf("10.9.%d.0/24", r.IntN(5)), func(p *Path) {
				p.NextHop = netip.AddrFrom4([4]byte{10, 0, 1, byte(1 + r.IntN(4))})
				p.RD[7], p.LocalPref, p.Label = byte(r.IntN(4)), uint32(100+r.IntN(2)), uint32(14+r.IntN(20))
			}))
		}
		paths := table.Paths()
		want, _ := testSite().Resolve(paths)
		r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		got, _ := testSite().Resolve(paths)
		for _, x := range []*fib.External{want, got} {
			for i := range x.Routes {
				slices.SortFunc(x.Routes[i].Via, func(a, b fib.ExternalVia) int {
					return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Label, b.Label))
				})
			}
		}
		if diff := gocmp.Diff(want, got, compareAddresses); diff != "" {
			t.Fatalf("seed %d: another order of the paths gives other routes (-want +got):\n%s", seed, diff)
		}
	}
}

// After some paths have changed, Update returns the routes that Resolve returns.
func TestUpdateEqualsResolve(t *testing.T) {
	limited := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 41))
		site := testSite()
		site.Networks[2].Import = append(site.Networks[2].Import, site.Networks[0].Import...)
		site.MaxRoutes = r.IntN(2) * 12
		targets := map[model.RouteTarget]bool{}
		for _, n := range site.Networks {
			for _, to := range n.Import {
				targets[to] = true
			}
		}
		table, last := newTable(nil), &fib.External{}
		for step := range 30 {
			for range 1 + r.IntN(6) {
				p := path(fmt.Sprintf("10.9.%d.0/24", r.IntN(8)), func(p *Path) {
					p.NextHop = netip.AddrFrom4([4]byte{10, 0, 1, byte(1 + r.IntN(3))})
					p.RD[7], p.LocalPref, p.Label = byte(r.IntN(3)), uint32(100+r.IntN(2)), uint32(14+r.IntN(20))
					switch r.IntN(4) {
					case 0:
						station(p)
						p.MAC[5] = byte(r.IntN(4))
						if r.IntN(2) == 0 {
							p.Prefix, p.RoutedLabel = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(r.IntN(4))}), 32), uint32(r.IntN(2)*20)
						}
					case 1:
						station(p)
						p.Kind, p.MAC, p.Origin = Multicast, model.MAC{}, p.NextHop
					}
					p.Targets = []model.RouteTarget{target(fmt.Sprintf("64512:%d", 1+r.IntN(4)))}
				})
				if r.IntN(3) == 0 {
					table.Withdraw(p.Key())
				} else {
					table.Put(p)
				}
			}
			paths, changes := table.PathsTo(targets)
			all := slices.DeleteFunc(table.Paths(), func(p Path) bool { return !targets[p.Targets[0]] })
			if !reflect.DeepEqual(all, paths) || changes == nil && step > 0 {
				t.Fatalf("seed %d: after the changes %v, the paths to the targets differ from the table (-want +got):\n%s", seed, changes, gocmp.Diff(all, paths, compareAddresses))
			}
			want, _ := site.Resolve(paths)
			if got := site.Update(last, paths, changes); changes != nil && !got.Equal(want) {
				t.Fatalf("seed %d: the routes after the changes %v differ (-want +got):\n%s", seed, changes, gocmp.Diff(want, got, compareAddresses))
			}
			limited += toInt(len(want.Routes) == site.MaxRoutes)
			last = want
		}
	}
	if limited < 100 {
		t.Errorf("only %d results have MaxRoutes routes, want at least 100", limited)
	}
}

// Of two paths by one router to an address, Update and Resolve choose the same, also if another network bridges to their MAC
// addresses: the label of routed packets decides.
func TestTheLabelOfADestinationDecides(t *testing.T) {
	site, table := testSite(), newTable(nil)
	site.Networks[2].Import = append(site.Networks[2].Import, site.Networks[0].Import...)
	put := func(mac byte, bridged, routed uint32) {
		table.Put(path("10.9.0.1/32", func(p *Path) {
			to := p.Prefix
			station(p)
			p.Prefix, p.MAC[5], p.Label, p.RoutedLabel, p.Targets = to, mac, bridged, routed, site.Networks[0].Import
		}))
	}
	targets := map[model.RouteTarget]bool{target("64512:1"): true, target("64512:3"): true}
	put(2, 20, 50)
	paths, _ := table.PathsTo(targets)
	last, _ := site.Resolve(paths)
	put(1, 30, 40)
	paths, changes := table.PathsTo(targets)
	want, _ := site.Resolve(paths)
	got := site.Update(last, paths, changes)
	if diff := gocmp.Diff(want, got, compareAddresses); diff != "" || len(want.Routes) != 3 || want.Routes[2].Via[0].Label != 40 {
		t.Errorf("the routes are %+v, want 3, and label 40 of routed packets; those of Update differ (-want +got):\n%s", want.Routes, diff)
	}
}

// The work for a withdrawal among many routes does not grow with their number: it resolves only the paths to its prefix.
func TestAWithdrawalResolvesOnlyItsPrefix(t *testing.T) {
	site, table, p := testSite(), newTable(nil), netip.MustParseAddr("11.0.0.0")
	targets := map[model.RouteTarget]bool{target("64512:1"): true}
	for range 10_000 {
		table.Put(path(p.String()+"/32", nil))
		p = p.Next()
	}
	paths, _ := table.PathsTo(targets)
	routes, _ := site.Resolve(paths)
	allocs := testing.AllocsPerRun(1, func() { // runs it twice
		p = p.Prev()
		table.Withdraw(Key{router, model.VPNv4, VPN, model.RouteDistinguisher{}, netip.PrefixFrom(p, 32), model.MAC{}, netip.Addr{}})
		paths, changes := table.PathsTo(targets)
		routes = site.Update(routes, paths, changes)
	})
	if len(routes.Routes) != 9_998 || allocs > 200 {
		t.Errorf("a withdrawal among 10,000 routes leaves %d of them after 2, and allocates %.0f objects; want 9,998 and at most 200", len(routes.Routes), allocs)
	}
}

// The verdicts follow the compiler of the tables: a path that an object of the fleet overrides is not used. In a network
// that uses the path, Why names addresses of its subnet.
func TestVerdictsNameRoutesThatTheTablesLack(t *testing.T) {
	s := testSite()
	s.Networks[0].Subnets = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	s.Networks[2].Import = append(s.Networks[2].Import, s.Networks[0].Import...)
	ignored := map[fib.ExternalDestination]string{
		{Network: "red", Prefix: netip.MustParsePrefix("10.9.0.0/16")}:  "the fleet has a route to the same prefix",
		{Network: "both", Prefix: netip.MustParsePrefix("10.9.0.0/16")}: "the fleet has a route to the same prefix",
		{Network: "both", Prefix: netip.MustParsePrefix("10.1.0.7/32")}: `port "y" has the address`,
		{Network: "red", Prefix: netip.MustParsePrefix("10.1.0.8/32")}:  `port "x" has the address`,
		{Network: "both", Prefix: netip.MustParsePrefix("10.1.0.8/32")}: `port "z" has the address`,
	}
	var got []string
	for _, v := range s.Explain([]Path{path("10.1.0.7/32", nil), path("10.1.0.8/32", nil), path("10.8.0.0/16", nil), path("10.9.0.0/16", nil)}, ignored) {
		got = append(got, fmt.Sprint(v.Prefix, " ", v.State, " ", v.Networks, " ", v.Why))
	}
	want := []string{
		`10.1.0.7/32 used [red] no port has this address of the subnet 10.1.0.0/16 of network red; network both does not use it: port "y" has the address`,
		`10.1.0.8/32 unused [] port "z" has the address; port "x" has the address`,
		"10.8.0.0/16 used [red both] ",
		"10.9.0.0/16 unused [] the fleet has a route to the same prefix",
	}
	must.Equal(t, want, got)
}
