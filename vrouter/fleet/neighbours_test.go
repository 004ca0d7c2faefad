package fleet

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// randomChange returns a random object, its key, its neighbours, and a function that puts it
// into a state.
func randomChange(r *rand.Rand, v *View) (what string, near *neighbours, with func(model.State) model.State) {
	name := func(kind string) string { return fmt.Sprint(kind, r.IntN(3)) }
	some := func(names ...string) (list []string) {
		for _, n := range names {
			if r.IntN(3) == 0 {
				list = append(list, n)
			}
		}
		return list
	}
	networks := []string{"n0", "n1", "n2"}
	host := func() netip.Addr { return netip.AddrFrom4([4]byte{10, byte(r.IntN(3)), 0, byte(2 + r.IntN(8))}) }
	switch r.IntN(6) {
	case 0:
		n := model.Node{Name: name("node"), Underlay: addresses(fmt.Sprint("192.0.2.", 1+r.IntN(4)))}
		if r.IntN(5) == 0 {
			n.Underlay = []netip.Addr{host()}
		}
		n.Encapsulations = [][]model.Encapsulation{nil, {model.VXLAN}, {model.MPLSoUDP}}[r.IntN(3)]
		if r.IntN(3) == 0 {
			n.BGP = &model.BGP{ASN: 64512, RouterID: addresses(fmt.Sprint("192.0.2.", 1+r.IntN(4)))[0], Neighbors: []model.Neighbor{{Address: netip.MustParseAddr("192.0.2.99")}}}
		}
		return fmt.Sprintf("node %+v", n), v.nearNode(n), func(s model.State) model.State {
			s.Nodes = withElement(s.Nodes, n, func(o model.Node) bool { return o.Name == n.Name })
			return s
		}
	case 1:
		n := model.Network{Name: name("n"), ID: uint32(1 + r.IntN(4)), Policies: some("p0", "p1", "p2")}
		n.VNI = n.ID + uint32(r.IntN(2))
		n.RD = model.RouteDistinguisher{1: 1, 7: byte(r.IntN(3))}
		if n.RD[7] == 0 {
			n.RD = model.RouteDistinguisher{}
		}
		n.Subnets = prefixes([]string{"10.0.0.0/24", "10.1.0.0/24", "10.2.0.0/24", "10.0.0.0/15", "192.0.2.0/30"}[r.IntN(5)])
		return fmt.Sprintf("network %+v", n), v.nearNetwork(n), func(s model.State) model.State {
			s.Networks = withElement(s.Networks, n, func(o model.Network) bool { return o.Name == n.Name })
			return s
		}
	case 2:
		p := model.Policy{Name: name("p")}
		for range r.IntN(2) * 130 {
			p.Rules = append(p.Rules, model.Rule{Direction: model.Ingress, Action: model.Allow})
		}
		return fmt.Sprint("policy ", p.Name, " with ", len(p.Rules), " rules"), v.nearPolicy(p), func(s model.State) model.State {
			s.Policies = withElement(s.Policies, p, func(o model.Policy) bool { return o.Name == p.Name })
			return s
		}
	case 3:
		g := model.Gateway{Name: name("g"), Addresses: addresses(fmt.Sprint("192.0.2.", 3+r.IntN(4))), Encapsulation: model.MPLSoUDP}
		for _, network := range some(networks...) {
			gn := model.GatewayNetwork{Network: network, Label: 100}
			for range r.IntN(3) {
				a := host()
				gn.Prefixes = append(gn.Prefixes, netip.PrefixFrom(a, 24+8*r.IntN(2)).Masked())
			}
			g.Networks = append(g.Networks, gn)
		}
		return fmt.Sprintf("gateway %+v", g), v.nearGateway(g), func(s model.State) model.State {
			s.Gateways = withElement(s.Gateways, g, func(o model.Gateway) bool { return o.Name == g.Name })
			return s
		}
	case 4:
		route := model.Route{Network: name("n"), Prefix: netip.PrefixFrom(host(), 24+8*r.IntN(2)).Masked()}
		for _, n := range some("port0", "port1", "port2", "port3") {
			route.Via = append(route.Via, model.Via{Port: n})
		}
		for _, n := range some("g0", "g1") {
			route.Via = append(route.Via, model.Via{Gateway: n})
		}
		return fmt.Sprintf("route %+v", route), v.nearRoute(route), func(s model.State) model.State {
			s.Routes = withElement(s.Routes, route, func(o model.Route) bool { return o.Network == route.Network && o.Prefix == route.Prefix })
			return s
		}
	}
	p := model.Port{Name: fmt.Sprint("port", r.IntN(6)), Network: name("n"), Node: name("node"), MAC: model.MAC{2, 0, 0, 0, 0, byte(r.IntN(8))}, IPs: []netip.Addr{host()}, Policies: some("p0", "p1")}
	if is := v.ports[p.Name]; is != nil {
		p.Network = is.Network // it cannot change
	}
	p.Attach.Netns = []string{"", "x", "y"}[r.IntN(3)]
	return fmt.Sprintf("port %+v", p), v.nearPort(p, nil), func(s model.State) model.State {
		s.Ports = withElement(s.Ports, p, func(o model.Port) bool { return o.Name == p.Name })
		return s
	}
}

// A change is valid beside its neighbours if and only if it is valid in the whole state.
func TestAChangeIsValidBesideItsNeighboursIfItIsValidInTheWholeState(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	v := viewOf(t, model.State{})
	accepted, refused := 0, 0
	for range 4000 {
		what, near, with := randomChange(r, v)
		next := with(v.State())
		whole, part := next.Validate(), with(near.state()).Validate()
		if (whole == nil) != (part == nil) {
			t.Fatalf("%s: in the whole state: %v\nbeside its neighbours: %v", what, whole, part)
		}
		if accepted++; whole != nil {
			accepted--
			refused++
			next = v.State()
		}
		if r.IntN(4) == 0 { // delete something, if the state stays valid
			less := next
			switch r.IntN(4) {
			case 0:
				less.Ports = dropOne(r, less.Ports)
			case 1:
				less.Routes = dropOne(r, less.Routes)
			case 2:
				less.Gateways = dropOne(r, less.Gateways)
			case 3:
				less.Networks = dropOne(r, less.Networks)
			}
			if less.Validate() == nil {
				next = less
			}
		}
		v = viewOf(t, next)
	}
	t.Logf("%d changes were valid, %d were not", accepted, refused)
	if accepted < 400 || refused < 400 {
		t.Errorf("%d changes were valid and %d were not, want at least 400 of each", accepted, refused)
	}
}

// viewOf returns a copy of a store that has a state.
func viewOf(t *testing.T, s model.State) *View {
	t.Helper()
	w := desiredBy(s.WithDefaults())
	var i store.Image
	for key, object := range w.objects {
		i.Entries = append(i.Entries, store.Entry{Key: key, Value: encode(object)})
	}
	for _, p := range w.ports {
		i.Entries = append(i.Entries, store.Entry{Key: placeOf(*p).key()}, store.Entry{Key: portKey(*p), Value: encode(p)})
	}
	return must.Get(newView(i))(t)
}

func dropOne[E any](r *rand.Rand, all []E) []E {
	if len(all) == 0 {
		return all
	}
	at := r.IntN(len(all))
	return slices.Delete(slices.Clone(all), at, at+1)
}
