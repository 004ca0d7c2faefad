package agent

import (
	"net/netip"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// The words about a denial name the port and the rule that decides.
func TestADenialNamesThePortAndTheRule(t *testing.T) {
	t.Parallel()
	address := netip.MustParseAddr
	state := model.State{
		Nodes: []model.Node{{Name: "a", Underlay: []netip.Addr{address("192.0.2.1")}}, {Name: "b", Underlay: []netip.Addr{address("192.0.2.2")}}},
		Networks: []model.Network{{Name: "red", ID: 7, Forwarding: model.L3, Policies: []string{"all"},
			Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::/64")}}},
		Ports: []model.Port{
			{Name: "web1", Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 3}, IPs: []netip.Addr{address("10.0.0.3"), address("fd00::3")}, Attach: model.Attachment{Netns: "n1"}},
			{Name: "web2", Network: "red", Node: "b", MAC: model.MAC{2, 0, 0, 0, 0, 4}, IPs: []netip.Addr{address("10.0.0.4"), address("fd00::4")}, Attach: model.Attachment{Netns: "n2"}, Policies: []string{"web"}},
			{Name: "here", Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 5}, IPs: []netip.Addr{address("10.0.0.5")}, Attach: model.Attachment{Netns: "n5"}, Policies: []string{"web"}},
		},
		Policies: []model.Policy{
			{Name: "web", Rules: []model.Rule{
				{Direction: model.Ingress, Action: model.Allow, Protocol: "tcp", Ports: "80-81"},
				{Direction: model.Ingress, Action: model.Deny, Protocol: "udp", Remote: netip.MustParsePrefix("10.0.0.3/32")},
			}},
			{Name: "all", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Allow, Protocol: "icmp"}}},
		},
	}
	want := reconcile.NewDesired("a", state.Slice("a"), &fib.IDs{}, nil)
	v := &snapshot{want: want, names: func() *names { return &names{vifs: map[uint32]string{1: "web1", 2: "here"}} }}
	web1, _ := want.Port("web1")
	for _, c := range []struct {
		to, protocol string
		port         uint16
		want         string
	}{
		{"10.0.0.4", "tcp", 81, ""},
		{"10.0.0.4", "icmp", 0, ""},
		{"10.0.0.4", "tcp", 82, "dropped on node b: policy (port web2, no ingress rule of policy web, all allows it), unless it answers a flow of web2"},
		{"10.0.0.4", "udp", 80, "dropped on node b: policy (port web2, rule 2 of policy web), unless it answers a flow of web2"},
		{"fd00::4", "udp", 80, "dropped on node b: policy (port web2, no ingress rule of policy web, all allows it), unless it answers a flow of web2"},
		{"10.0.0.5", "udp", 80, ""}, // on this node: the trace has the policy as a step
		{"10.0.0.9", "udp", 80, ""}, // no port
	} {
		p, err := makeProbe(v, api.TraceRequest{From: "web1", To: address(c.to), Protocol: c.protocol, DestinationPort: c.port})
		must.Succeed(t, err)
		o, _ := openingOf(p.frame)
		if got := v.deniedThere(&web1, o, "node b"); got != c.want {
			t.Errorf("%s to %s: %q, want %q", p.words, c.to, got, c.want)
		}
	}
	p, err := makeProbe(v, api.TraceRequest{From: "web1", To: address("10.0.0.5"), Protocol: "udp", DestinationPort: 80})
	must.Succeed(t, err)
	for _, c := range []struct {
		vif     uint32
		entered bool
		want    string
	}{
		{1, true, "port here, rule 2 of policy web"}, // between two ports of this node, the vif is the sender's
		{2, false, "port here, rule 2 of policy web"},
		{0, false, ""},
	} {
		if got := v.deniedFrame(c.vif, c.entered, p.frame); got != c.want {
			t.Errorf("vif %d, entered %v: %q, want %q", c.vif, c.entered, got, c.want)
		}
	}
}

// A packet to another network is denied by the policy of the port there, if the sender's network imports
// the route to the port and has no route of its own to the address.
func TestADenialInAnotherNetwork(t *testing.T) {
	t.Parallel()
	target := []model.RouteTarget{{0, 2, 1}}
	port := func(name, network, node, ip string, last byte) model.Port {
		return model.Port{Name: name, Network: network, Node: node, MAC: model.MAC{2, 0, 0, 0, 0, last}, IPs: []netip.Addr{netip.MustParseAddr(ip)}, Attach: model.Attachment{Netns: name}}
	}
	state := model.State{
		Nodes: []model.Node{{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, {Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.2")}}},
		Networks: []model.Network{
			{Name: "red", ID: 7, Tenant: "red", Import: target, Export: target, Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}},
			{Name: "blue", ID: 8, Tenant: "blue", Import: target, Export: target, Subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}, Policies: []string{"closed"}},
		},
		Ports:    []model.Port{port("web", "red", "a", "10.0.0.3", 3), port("db", "blue", "b", "10.1.0.4", 4)},
		Policies: []model.Policy{{Name: "closed", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Deny}}}},
	}
	denied := func() string {
		v := &snapshot{want: reconcile.NewDesired("a", state.WithDefaults().Slice("a"), &fib.IDs{}, nil)}
		web, _ := v.want.Port("web")
		return v.deniedThere(&web, opening{source: web.IPs[0], destination: netip.MustParseAddr("10.1.0.4"), protocol: 6}, "node b")
	}
	must.Equal(t, "dropped on node b: policy (port db, rule 1 of policy closed), unless it answers a flow of db", denied())
	state.Routes = []model.Route{{Network: "red", Prefix: netip.MustParsePrefix("10.1.0.4/32"), Via: []model.Via{{Port: "web"}}}}
	must.Equal(t, "", denied())
	state.Routes = nil
	state.Networks[0].Import = nil
	must.Equal(t, "", denied())
}

// A static route leads to ports, its next hops, and the policy of such a port can deny the packet. If the route has
// several next hops, only the ports on the receiver's node matter.
func TestADenialBehindAStaticRoute(t *testing.T) {
	t.Parallel()
	address, prefix := netip.MustParseAddr, netip.MustParsePrefix
	port := func(name, node, ip string, last byte, policies ...string) model.Port {
		return model.Port{Name: name, Network: "red", Node: node, MAC: model.MAC{2, 0, 0, 0, 0, last}, IPs: []netip.Addr{address(ip)}, Attach: model.Attachment{Netns: name}, Policies: policies}
	}
	via := func(to string, ports ...string) model.Route {
		r := model.Route{Network: "red", Prefix: prefix(to)}
		for _, p := range ports {
			r.Via = append(r.Via, model.Via{Port: p})
		}
		return r
	}
	state := model.State{
		Nodes:    []model.Node{{Name: "a", Underlay: []netip.Addr{address("192.0.2.1")}}, {Name: "b", Underlay: []netip.Addr{address("192.0.2.2")}}, {Name: "c", Underlay: []netip.Addr{address("192.0.2.3")}}},
		Networks: []model.Network{{Name: "red", ID: 7, Subnets: []netip.Prefix{prefix("10.0.0.0/24")}}},
		Ports: []model.Port{
			port("web1", "a", "10.0.0.3", 3), port("here", "a", "10.0.0.6", 6, "closed"),
			port("web2", "b", "10.0.0.4", 4, "closed"), port("web3", "b", "10.0.0.5", 5), port("web4", "c", "10.0.0.7", 7),
		},
		Policies: []model.Policy{{Name: "closed", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Deny, Protocol: "udp"}}}},
		Routes: []model.Route{
			via("10.96.0.0/16", "web2"), via("10.96.2.0/24", "web3"), via("10.97.0.0/16", "web4", "web2"), via("10.98.0.0/16", "web3", "web2"), via("10.99.0.0/16", "here"),
			via("0.0.0.0/0", "web2"), via("10.0.0.64/26", "web2"), {Network: "red", Prefix: prefix("10.96.3.0/24"), Discard: true},
		},
	}
	v := &snapshot{want: reconcile.NewDesired("a", state.WithDefaults().Slice("a"), &fib.IDs{}, nil)}
	web1, _ := v.want.Port("web1")
	const closed = ": policy (port web2, rule 1 of policy closed), unless it answers a flow of web2"
	for _, c := range []struct{ to, end, there, here string }{
		{"10.96.1.1", "node b", "dropped on node b" + closed, ""},
		{"10.96.2.1", "node b", "", ""}, // a longer prefix
		{"10.96.3.1", "node b", "", ""},
		{"10.97.0.1", "node b", "dropped on node b" + closed, ""},
		{"10.97.0.1", "node c", "", ""},
		{"10.98.0.1", "node b", "dropped on node b, if it selects port web2" + closed, ""},
		{"10.99.0.1", "port here", "", "port here, rule 1 of policy closed"},
		{"192.0.2.9", "node b", "dropped on node b" + closed, ""},
		{"192.0.2.9", "router 192.0.2.4", "", ""}, // a longer prefix that a router announces
		{"10.0.0.70", "node b", "dropped on node b" + closed, ""},
		{"10.0.0.9", "node b", "", ""}, // unused address of a subnet
	} {
		o := opening{source: web1.IPs[0], destination: address(c.to), protocol: 17, port: 53, ported: true}
		if there, here := v.deniedThere(&web1, o, c.end), v.deniedHere(&web1, o); there != c.there || here != c.here {
			t.Errorf("a packet to %s, which goes to %s: the receiver's node says %q and this node %q, want %q and %q", c.to, c.end, there, here, c.there, c.here)
		}
	}
}

// A node's address passes its workloads' policies, and nothing else does.
func TestNoRuleDeniesProbesOfTheNode(t *testing.T) {
	t.Parallel()
	address := netip.MustParseAddr
	port := func(name, node, ip string, last byte, at model.Attachment) model.Port {
		return model.Port{Name: name, Network: "red", Node: node, MAC: model.MAC{2, 0, 0, 0, 0, last}, IPs: []netip.Addr{address(ip)}, Attach: at}
	}
	state := model.State{
		Nodes:    []model.Node{{Name: "a", Underlay: []netip.Addr{address("192.0.2.1")}}, {Name: "b", Underlay: []netip.Addr{address("192.0.2.2")}}},
		Networks: []model.Network{{Name: "red", ID: 7, Forwarding: model.L3, Policies: []string{"closed"}, NodeAccess: true, Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}},
		Ports: []model.Port{
			port("web", "a", "10.0.0.3", 3, model.Attachment{Netns: "n1"}),
			port("host-a", "a", "10.0.0.4", 4, model.Attachment{Host: true}),
			port("host-b", "b", "10.0.0.5", 5, model.Attachment{Host: true}),
		},
		Policies: []model.Policy{{Name: "closed", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Deny}}}},
	}
	v := &snapshot{want: reconcile.NewDesired("a", state.Slice("a"), &fib.IDs{}, nil)}
	for _, c := range []struct{ from, to, want string }{
		{"10.0.0.4", "web", ""},
		{"10.0.0.5", "web", "port web, rule 1 of policy closed"},
		{"10.0.0.3", "host-a", ""},
	} {
		to, _ := v.want.Port(c.to)
		if got := v.denial(&to, model.Ingress, opening{source: address(c.from), destination: to.IPs[0], protocol: 6}); got != c.want {
			t.Errorf("from %s to %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}
