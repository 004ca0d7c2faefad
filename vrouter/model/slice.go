package model

import (
	"cmp"
	"slices"
)

// Slice is the part of a state that one node needs: all nodes, the networks that have ports on
// the node, and the networks whose routes these import. Slices of different times share their ports, so
// copying a slice and comparing two slices costs little.
type Slice struct {
	State                         // Ports has at most the ports of the node
	All   []*CompactPort          // ports of these networks on all nodes, in the order of ComparePorts; read-only
	Hops  map[string]*CompactPort // ports that are next hops of the routes, by name
}

// Slice returns the slice of a node. It has all networks of the state.
func (s State) Slice(node string) Slice {
	slice := Slice{s, make([]*CompactPort, len(s.Ports)), map[string]*CompactPort{}}
	places := map[Place]*Place{}
	slice.Ports = nil
	hops := map[Via]bool{}
	for _, r := range s.Routes {
		for _, v := range r.Via {
			hops[v] = true
		}
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		at := Place{p.Network, p.Node}
		if places[at] == nil {
			places[at] = &at
		}
		c := p.Compact(places[at])
		slice.All[i] = &c
		if hops[Via{Port: p.Name}] {
			slice.Hops[p.Name] = &c
		}
		if p.Node == node {
			slice.Ports = append(slice.Ports, *p)
		}
	}
	slices.SortFunc(slice.All, ComparePorts)
	return slice
}

// Around returns the part of a state that the agent of the given node needs. It contains all
// nodes and all policies. It contains only the networks that have a port on the node, and those
// whose routes these import, but of these networks all ports, on all nodes, all routes and all
// gateways.
func (s State) Around(node string) State {
	here, count := map[string]bool{}, 0
	for i := range s.Ports {
		if p := &s.Ports[i]; p.Node == node {
			here[p.Network] = true
		}
	}
	here = WithLeaks(here, Leaks(s.Networks))
	all := s
	s.Networks = keep(all.Networks, func(n Network) bool { return here[n.Name] })
	s.Routes = keep(all.Routes, func(r Route) bool { return here[r.Network] })
	for i := range all.Ports {
		if here[all.Ports[i].Network] {
			count++
		}
	}
	s.Ports, s.Gateways = make([]Port, 0, count), nil
	for i := range all.Ports { // keep would first copy all ports, which are many
		if p := &all.Ports[i]; here[p.Network] {
			s.Ports = append(s.Ports, *p)
		}
	}
	for _, g := range all.Gateways {
		if g = GatewayIn(g, here); len(g.Networks) > 0 {
			s.Gateways = append(s.Gateways, g)
		}
	}
	return s
}

// GatewayIn returns a gateway with only the given networks.
func GatewayIn[V any](g Gateway, networks map[string]V) Gateway {
	g.Networks = keep(g.Networks, func(n GatewayNetwork) bool { _, is := networks[n.Network]; return is })
	return g
}

// Whole returns the slice as a state that has copies of all ports.
func (s Slice) Whole() State {
	state := s.State
	state.Ports = make([]Port, len(s.All))
	for i, p := range s.All {
		state.Ports[i] = p.Port()
	}
	return state
}

// On returns the ports of a network on a node, sorted by name.
func (s Slice) On(network, node string) []*CompactPort {
	first, _ := slices.BinarySearchFunc(s.All, &CompactPort{Place: &Place{network, node}}, ComparePorts)
	last := first
	for last < len(s.All) && s.All[last].Node == node && s.All[last].Network == network {
		last++
	}
	return s.All[first:last]
}

// ComparePorts orders ports by network, node and name.
func ComparePorts(a, b *CompactPort) int {
	if a.Place == b.Place {
		return cmp.Compare(a.Name, b.Name)
	}
	return cmp.Or(cmp.Compare(a.Network, b.Network), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name))
}

// DiffPorts calls changed for each port that differs between two lists in the order of
// ComparePorts. was is nil for a port that is new in a network on a node, and is is nil for a
// deleted port. Ports that the lists share cost only the comparison of their pointers.
func DiffPorts(before, after []*CompactPort, changed func(was, is *CompactPort)) {
	for len(before) > 0 || len(after) > 0 {
		order := 0
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		case before[0] != after[0]:
			order = ComparePorts(before[0], after[0])
		}
		switch {
		case order < 0:
			changed(before[0], nil)
			before = before[1:]
		case order > 0:
			changed(nil, after[0])
			after = after[1:]
		default:
			if before[0] != after[0] && !before[0].Port().Equal(after[0].Port()) {
				changed(before[0], after[0])
			}
			before, after = before[1:], after[1:]
		}
	}
}
