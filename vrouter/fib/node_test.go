package fib

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// accessed is the state of pairOf with node_access, and with a port that connects each node itself.
func accessed() model.State {
	s := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}, model.L3)
	s.Networks[0].NodeAccess = true
	for i, node := range []string{"a", "b"} {
		s.Ports = append(s.Ports, model.Port{
			Name: "host-" + node, Network: "red", Node: node, MAC: model.MAC{2, 0, 0, 0, 1, byte(i)},
			IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 1, 1, byte(i)})}, Attach: model.Attachment{Host: true},
		})
	}
	return s
}

func TestPacketsToOutsideGoToTheSendersNode(t *testing.T) {
	s := accessed()
	s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 8, Subnets: []netip.Prefix{prefix("10.2.0.0/16")}, Forwarding: model.L3})
	s.Ports = append(s.Ports, model.Port{
		Name: "other", Network: "blue", Node: "a", MAC: model.MAC{2, 0, 0, 0, 2, 0}, IPs: addrs("10.2.0.2"), Attach: model.Attachment{Host: true},
	})
	tables, warnings := compiled(t, s, nil)
	if len(warnings) > 0 {
		t.Errorf("the warnings are %v, want none", warnings)
	}
	host, _ := tables.named("port host-a")
	for to, want := range map[string]layout.Route{
		"0.0.0.0/0": {Nexthop: host}, "::/0": {Nexthop: host}, // not to node b
		"10.1.0.0/16": {}, // unused addresses of the network
		"10.2.0.0/16": {}, // a network that the kernel of node a reaches too
	} {
		got, has := tables.Routes[RouteKey{VRF: 7, Prefix: prefix(to)}]
		if !has || got != want {
			t.Errorf("the route to %s is %+v (%v), want %+v", to, got, has, want)
		}
		if got, has := tables.Routes[RouteKey{VRF: 8, Prefix: prefix(to)}]; has {
			t.Errorf("network blue, without node_access, has the route %+v to %s", got, to)
		}
	}
	s.Routes = []model.Route{{Network: "red", Prefix: prefix("0.0.0.0/0"), Discard: true}}
	tables, _ = compiled(t, s, nil)
	if got := tables.Routes[RouteKey{VRF: 7, Prefix: prefix("0.0.0.0/0")}]; got != (layout.Route{}) {
		t.Errorf("a static route is replaced by %+v", got)
	}
	s.Networks[0].NodeAccess = false
	tables, _ = compiled(t, s, nil)
	if got, has := tables.Routes[RouteKey{VRF: 7, Prefix: prefix("::/0")}]; has {
		t.Errorf("without node_access the network has the route %+v", got)
	}
}

func TestOnlyThePortOfNodeAccessForwardsForItsNode(t *testing.T) {
	s := accessed()
	tables, _ := compiled(t, s, nil)
	for _, v := range tables.Vifs {
		want, host := []netip.Prefix{prefix("10.1.0.2/32")}, tables.Ports[v.ID] == "host-a"
		if host {
			want = []netip.Prefix{prefix("10.1.1.0/32"), prefix("0.0.0.0/0"), prefix("::/0")}
		}
		if (v.Flags&layout.VifNode != 0) != host || !reflect.DeepEqual(v.Sources(), want) {
			t.Errorf("vif %s: flags %x, sources %v, want %v", tables.Ports[v.ID], v.Flags, v.Sources(), want)
		}
	}
	s.Networks[0].NodeAccess = false
	tables, _ = compiled(t, s, nil)
	for _, v := range tables.Vifs {
		if v.Flags&layout.VifNode != 0 || len(v.Sources()) > 1 {
			t.Errorf("without node_access: vif %s: flags %x, sources %v", tables.Ports[v.ID], v.Flags, v.Sources())
		}
	}
}

func TestPoliciesAdmitProbesOfTheNode(t *testing.T) {
	s := accessed()
	s.Policies = []model.Policy{
		{Name: "closed", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Deny}}},
		{Name: "open", Rules: []model.Rule{{Direction: model.Egress, Action: model.Allow}}},
	}
	s.Networks[0].Policies = []string{"closed", "open"}
	tables, _ := compiled(t, s, nil)
	probe := layout.Rule{Flags: layout.RuleAllow | layout.RuleAlways, LastPort: 65535}.With(prefix("10.1.1.0/32"))
	for _, v := range tables.Vifs {
		got, judged := tables.Policies[v.ID]
		switch tables.Ports[v.ID] {
		case "host-a":
			if judged {
				t.Errorf("the network's policies apply to the node: %+v", got)
			}
		default:
			if len(got.Rules) != 3 || got.Rules[0] != probe || got.Rules[1].Flags&layout.RuleAllow != 0 {
				t.Errorf("vif %s: %+v, want first %+v", tables.Ports[v.ID], got.Rules, probe)
			}
		}
	}
	s.Networks[0].Policies = nil
	tables, _ = compiled(t, s, nil)
	if len(tables.Policies) > 0 {
		t.Errorf("without rules: %+v", tables.Policies)
	}
}

// The node itself reaches services by its kernel.
func TestWorkloadsOfNetworksWithNodeAccessReachServices(t *testing.T) {
	for _, c := range []struct{ access, services bool }{{true, true}, {true, false}, {false, true}} {
		s := accessed()
		s.Networks[0].NodeAccess = c.access
		tables, _ := compiled(t, s, func(f *Facts) { f.Services = c.services })
		for _, v := range tables.Vifs {
			want := c.access && c.services && tables.Ports[v.ID] != "host-a"
			if (v.Flags&layout.VifServices != 0) != want {
				t.Errorf("%+v: vif %s has the flags %x", c, tables.Ports[v.ID], v.Flags)
			}
		}
	}
}

func TestGroupsRestrictWorkloadsButNotTheirNode(t *testing.T) {
	s := accessed()
	g := &Grouping{Sets: Sets{Allows: map[Allow]bool{{Group: 5}: true}}, Revision: 9, Groups: map[string]Group{s.Ports[0].Name: {Number: 5, In: true, Out: true}}}
	var id uint32
	judged := func(limit uint32) Policy {
		t.Helper()
		tables, warnings := compiled(t, s, func(f *Facts) { f.Grouping, f.Limits.Sets = g, limit })
		if (limit != 0) != (len(warnings) > 0) || (limit == 0) != tables.Sets.Allows[Allow{Group: 5}] {
			t.Errorf("limit %d: warnings %v, sets %v", limit, warnings, tables.Sets)
		}
		for _, v := range tables.Vifs {
			if is := tables.Ports[v.ID] == s.Ports[0].Name; is {
				id = v.ID
			} else if _, has := tables.Policies[v.ID]; has {
				t.Errorf("vif %s has a policy", tables.Ports[v.ID])
			}
			if (v.Flags&layout.VifPolicy != 0) != (v.ID == id) {
				t.Errorf("vif %s: flags %x", tables.Ports[v.ID], v.Flags)
			}
		}
		return tables.Policies[id]
	}
	always := func(flags uint8, a string) layout.Rule {
		return layout.Rule{Flags: flags | layout.RuleAllow | layout.RuleAlways, LastPort: 65535}.With(prefix(a))
	}
	want := Policy{AllowIn: true, AllowOut: true, Group: g.Groups[s.Ports[0].Name], Revision: 9, Rules: []layout.Rule{
		always(0, "10.1.1.0/32"), always(layout.RuleEgress, "10.1.1.0/32"), always(0, "192.0.2.1/32"), always(layout.RuleEgress, "192.0.2.1/32"),
	}}
	if got := judged(0); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	want.Revision = 0
	g.Allows[Allow{Group: 6}] = true
	if got := judged(1); !reflect.DeepEqual(got, want) { // no group has entries
		t.Errorf("over the limit: %+v, want %+v", got, want)
	}
}

func TestPacketsThatLeaveANetworkWithAPoolAreTranslated(t *testing.T) {
	s := accessed()
	s.Networks[0].NATPool = []netip.Prefix{prefix("203.0.113.0/28")}
	for i := range s.Ports {
		switch p := &s.Ports[i]; {
		case p.Attach.Host && p.Node == "a":
			p.Floating = addrs("203.0.113.1")
		case p.Attach.Host:
			p.Floating = addrs("203.0.113.2")
		case p.Node == "a":
			p.Floating = addrs("203.0.113.9")
		default:
			p.Floating = addrs("203.0.113.10")
		}
	}
	tables, warnings := compiled(t, s, nil)
	if len(warnings) > 0 {
		t.Errorf("the warnings are %v, want none", warnings)
	}
	outside, out := tables.named("outside red")
	host, plain := tables.named("port host-a")
	if out.Flags&layout.NexthopNAT == 0 || plain.Flags&layout.NexthopNAT != 0 || out.Vif != plain.Vif || out.Vif == 0 {
		t.Errorf("nexthops with and without NAT: %+v and %+v, want one vif for both, and NAT only in the first", out, plain)
	}
	for to, want := range map[string]uint32{"0.0.0.0/0": outside, "::/0": host /* no IPv6 in the pool */, "10.1.1.0/32": host} {
		if got := tables.Routes[RouteKey{VRF: 7, Prefix: prefix(to)}]; got.Nexthop != want {
			t.Errorf("the route to %s is %+v, want nexthop %d", to, got, want)
		}
	}
	want := layout.NAT{VRF: 7, FirstPort: 1024, LastPort: 65535, Address4: layout.AddressOf(addrs("203.0.113.1")[0])}
	if got := tables.NATs[out.Vif]; got != want || len(tables.NATs) != 1 {
		t.Errorf("the table nats is %+v, want only %+v for vif %d", tables.NATs, want, out.Vif)
	}
	floating := layout.AddressOf(addrs("203.0.113.9")[0])
	inside := tables.Floatings[layout.FloatingKey{Vif: out.Vif, Address: floating}].Other
	_, port := tables.named("port " + s.Ports[slices.IndexFunc(s.Ports, func(p model.Port) bool { return p.Node == "a" })].Name)
	vif := tables.Vifs[port.Oif]
	for _, v := range []uint32{out.Vif, vif.ID} {
		if back := tables.Floatings[layout.FloatingKey{Vif: v, Address: inside}].Other; len(tables.Floatings) != 3 || back != floating {
			t.Errorf("floating addresses %+v, want only the one of the port on this node, in both directions, and for its vif", tables.Floatings)
		}
	}
	if vif.Flags&layout.VifFloating == 0 {
		t.Errorf("the vif of the workload with a floating address has the flags %x", vif.Flags)
	}
	route := layout.Route{Nexthop: outside, Flags: layout.RouteFloating}
	if got := tables.Routes[RouteKey{VRF: 7, Prefix: prefix("203.0.113.9/32")}]; got != route {
		t.Errorf("the route to the floating address is %+v, want %+v", got, route)
	}
	if got, has := tables.Routes[RouteKey{VRF: 7, Prefix: prefix("203.0.113.10/32")}]; has {
		t.Errorf("the route %+v leads to a floating address of another node", got)
	}
}

func TestNodesThatShareAnAddressSendPacketsToTheNodeWithThePort(t *testing.T) {
	s := accessed()
	n := &s.Networks[0]
	n.NATPool, n.NATPorts = []netip.Prefix{prefix("203.0.113.0/31")}, 32256 // two nodes for each address
	s.Ports[len(s.Ports)-2].NATSlot, s.Ports[len(s.Ports)-1].NATSlot = 2, 1
	tables, warnings := compiled(t, s, nil)
	if len(warnings) > 0 {
		t.Errorf("the warnings are %v, want none", warnings)
	}
	_, plain := tables.named("port host-a")
	outside, _ := tables.named("outside red")
	shared := addrs("203.0.113.0")[0]
	if got, want := tables.Routes[hostKey(7, shared)], (layout.Route{Nexthop: outside, Flags: layout.RouteFloating}); got != want {
		t.Errorf("the route to %s is %+v, want %+v", shared, got, want)
	}
	if got, want := tables.NATs[plain.Vif], (layout.NAT{VRF: 7, FirstPort: 33280, LastPort: 65535, Address4: layout.AddressOf(shared)}); got != want {
		t.Errorf("the NAT entry of node a is %+v, want %+v", got, want)
	}
	want := map[layout.FloatingKey]layout.Floating{
		{Vif: plain.Vif, Address: layout.AddressOf(shared), Port: 1024}: {Other: layout.AddressOf(s.Ports[len(s.Ports)-1].IPs[0])},
	}
	if !reflect.DeepEqual(tables.Floatings, want) {
		t.Errorf("the table that finds the node of a shared address and port is %+v, want %+v", tables.Floatings, want)
	}
	sender := layout.SenderOf(7, tables.Remotes[layout.AddressOf(addrs("192.0.2.2")[0])].ID, prefix("0.0.0.0/0"))
	if _, may := tables.Senders[sender]; !may {
		t.Errorf("node b must not send packets from outside the network: %+v", tables.Senders)
	}
	s.Ports[len(s.Ports)-1].NATSlot = 3 // of the other address
	tables, _ = compiled(t, s, nil)
	if len(tables.Floatings) > 0 {
		t.Errorf("nodes with different addresses of the pool have entries for packets of other nodes: %+v", tables.Floatings)
	}
	s.Ports[len(s.Ports)-1].NATSlot = 0
	tables, _ = compiled(t, s, nil)
	if _, may := tables.Senders[sender]; may {
		t.Error("node b may send packets from outside the network, but has no share of the pool")
	}
}

// The permission to send from outside the network stays when a port with an equal permission is deleted.
func TestAChangeKeepsWhatASharedAddressPermits(t *testing.T) {
	s := accessed()
	s.Networks[0].NATPool, s.Networks[0].NATPorts = []netip.Prefix{prefix("203.0.113.0/31")}, 32256
	s.Ports[len(s.Ports)-2].NATSlot, s.Ports[len(s.Ports)-1].NATSlot = 2, 1
	firewall := model.Port{Name: "firewall", Network: "red", Node: "b", MAC: model.MAC{2, 0, 0, 0, 3, 0}, IPs: addrs("10.1.0.9"), AllowSources: everything}
	with := s
	with.Ports = append(slices.Clone(s.Ports), firewall)
	with, s = withTunnels(with).WithDefaults(), withTunnels(s).WithDefaults()
	ids := &IDs{}
	last, err := Compile(with.Slice("a"), "a", factsFor(with, "a", nil), ids, nil)
	must.Succeed(t, err)
	next, err := Compile(s.Slice("a"), "a", factsFor(s, "a", nil), ids, last)
	must.Succeed(t, err)
	before, after := next.Since(last)
	for key := range before.Senders {
		if _, stays := after.Senders[key]; !stays {
			t.Errorf("the entry of sender %+v was deleted, want it kept", key)
		}
	}
	if all := next.All(); len(all.Senders) != 2 {
		t.Errorf("the senders are %+v, want IPv4 and IPv6 of node b", all.Senders)
	}
}
