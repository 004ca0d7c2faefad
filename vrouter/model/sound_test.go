package model

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// sane is a valid state with objects of all kinds.
func sane() State {
	s := State{
		Nodes:    []Node{{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, {Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.2")}}},
		Networks: []Network{{Name: "blue", ID: 2, Subnets: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24")}}, {Name: "red", ID: 1, Forwarding: L2L3, Subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}}},
		Policies: []Policy{{Name: "web", Rules: []Rule{{Direction: Ingress, Action: Allow, Protocol: "tcp", Ports: "80"}}}},
		Gateways: []Gateway{{Name: "edge", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.9")}, Encapsulation: VXLAN, MAC: MAC{2, 0, 0, 9, 0, 1}, Networks: []GatewayNetwork{{Network: "red", MACs: []MAC{{2, 0, 0, 9, 0, 2}}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.0.200/32")}}}}},
		Routes:   []Route{{Network: "red", Prefix: netip.MustParsePrefix("10.7.0.0/16"), Via: []Via{{Port: "x"}, {Port: "y"}}}},
	}
	for i, name := range []string{"x", "y", "z"} {
		s.Ports = append(s.Ports, Port{Name: name, Network: "red", Node: []string{"a", "b", "b"}[i], MAC: MAC{2, 0, 0, 0, 0, byte(i + 1)}, IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 1, 0, byte(10 + i)})}})
	}
	s.Ports = append(s.Ports, Port{Name: "w", Network: "blue", Node: "a", MAC: MAC{2, 0, 0, 0, 0, 1}, IPs: []netip.Addr{netip.MustParseAddr("10.2.0.5")}})
	return s
}

// Sound removes an invalid object and the objects that depend on it.
func TestOneObjectsErrorLeavesTheOthers(t *testing.T) {
	must.Succeed(t, sane().Validate())
	if s, err := sane().Sound(); err != nil || len(s.Ports) != 4 || len(s.Routes[0].Via) != 2 {
		t.Fatalf("Sound of a valid state: error %v, state %+v", err, s)
	}
	port := func(name string, change func(*Port)) func(*State) {
		return func(s *State) {
			change(&s.Ports[slices.IndexFunc(s.Ports, func(p Port) bool { return p.Name == name })])
		}
	}
	for what, c := range map[string]struct {
		change  func(*State)
		removed string           // names of the removed objects, except routes
		check   func(State) bool // of the remaining routes
	}{
		"a port outside its subnet":                     {port("z", func(p *Port) { p.IPs[0] = netip.MustParseAddr("10.9.0.1") }), "z", nil},
		"a port on a node that does not exist":          {port("z", func(p *Port) { p.Node = "lost" }), "z", nil},
		"a port that is a next hop":                     {port("y", func(p *Port) { p.MAC = MAC{} }), "y", func(s State) bool { return len(s.Routes) == 1 && len(s.Routes[0].Via) == 1 }},
		"a port with a gateway's MAC":                   {port("z", func(p *Port) { p.MAC = MAC{2, 0, 0, 9, 0, 2} }), "z", nil},
		"a port with a gateway's prefix":                {port("z", func(p *Port) { p.IPs[0] = netip.MustParseAddr("10.1.0.200") }), "z", nil},
		"a network without subnets":                     {func(s *State) { s.Networks[0].Subnets = nil }, "blue w", nil},
		"a network that overlaps another":               {func(s *State) { s.Networks[1].Subnets[0] = netip.MustParsePrefix("10.2.0.0/25") }, "edge red x y z", func(s State) bool { return len(s.Routes) == 0 }},
		"a node with another's address":                 {func(s *State) { s.Nodes[1].Underlay = s.Nodes[0].Underlay }, "b y z", func(s State) bool { return len(s.Routes[0].Via) == 1 }},
		"an invalid policy that a port uses":            {func(s *State) { s.Policies[0].Rules[0].Protocol = "x"; s.Ports[2].Policies = []string{"web"} }, "web z", nil},
		"a gateway without addresses":                   {func(s *State) { s.Gateways[0].Addresses = nil; s.Routes[0].Via = []Via{{Gateway: "edge"}} }, "edge", func(s State) bool { return len(s.Routes) == 1 && s.Routes[0].Discard }},
		"a route that discards and has next hops":       {func(s *State) { s.Routes[0].Discard = true }, "", func(s State) bool { return len(s.Routes) == 0 }},
		"a route through a port that does not exist":    {func(s *State) { s.Routes[0].Via = []Via{{Port: "nothing"}} }, "", func(s State) bool { return s.Routes[0].Discard }},
		"a route through a gateway that does not exist": {func(s *State) { s.Routes[0].Via = []Via{{Gateway: "none"}} }, "", func(s State) bool { return s.Routes[0].Discard }},
	} {
		s := sane()
		before := names(s)
		c.change(&s)
		got, err := s.Sound()
		if err == nil {
			t.Errorf("%s: Sound returns no error", what)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: the result of Sound is invalid: %v", what, err)
		}
		after := names(got)
		removed := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(after, name) })
		if strings.Join(removed, " ") != c.removed {
			t.Errorf("%s: Sound removes %q, want %q", what, removed, c.removed)
		}
		if c.check != nil && !c.check(got) {
			t.Errorf("%s: the remaining routes are %+v", what, got.Routes)
		}
	}
}

// names returns the names of all objects except routes.
func names(s State) (all []string) {
	for _, n := range s.Nodes {
		all = append(all, n.Name)
	}
	for _, n := range s.Networks {
		all = append(all, n.Name)
	}
	for _, n := range s.Ports {
		all = append(all, n.Name)
	}
	for _, n := range s.Gateways {
		all = append(all, n.Name)
	}
	for _, n := range s.Policies {
		all = append(all, n.Name)
	}
	slices.Sort(all)
	return all
}
