package model

import "slices"

// Sound removes the invalid objects of a state and fills in the defaults. So an error in
// one object does not affect the others. The error describes the invalid objects; nil:
// the whole state is valid. If a port and an object of another kind exclude each other,
// Sound removes the port.
//
// A route loses the next hops that are removed. If it has no other next hop, it
// discards packets, so that they do not follow a route with a shorter prefix. Sound does
// not check that nodes can reach each other; Validate does.
func (s State) Sound() (State, error) {
	s = s.WithDefaults()
	var first error
	for range maxSoundRounds {
		v := newValidation(s)
		v.checkObjects()
		err := v.result()
		if first == nil {
			first = err
		}
		if len(v.faulty) == 0 {
			return s, first // no invalid object, but perhaps an error in the settings
		}
		s = s.without(v.faulty)
	}
	return s, first
}

// maxSoundRounds is larger than the longest chain of objects that depend on each other.
const maxSoundRounds = 20

// without returns a copy of the state without the objects in out.
func (s State) without(out map[owner]bool) State {
	s.Nodes = keep(s.Nodes, func(n Node) bool { return !out[owner{"node", n.Name}] })
	s.Networks = keep(s.Networks, func(n Network) bool { return !out[owner{"network", n.Name}] })
	s.Ports = keep(s.Ports, func(p Port) bool { return !out[owner{"port", p.Name}] })
	s.Gateways = keep(s.Gateways, func(g Gateway) bool { return !out[owner{"gateway", g.Name}] })
	s.Policies = keep(s.Policies, func(p Policy) bool { return !out[owner{"policy", p.Name}] })
	networks := map[string]string{} // of the ports
	for _, p := range s.Ports {
		networks[p.Name] = p.Network
	}
	routes := make([]Route, 0, len(s.Routes))
	for _, r := range s.Routes {
		via := keep(r.Via, func(w Via) bool {
			if w.Port != "" {
				return networks[w.Port] == r.Network
			}
			return slices.ContainsFunc(s.Gateways, func(g Gateway) bool {
				_, serves := g.Network(r.Network)
				return g.Name == w.Gateway && serves
			})
		})
		switch {
		case len(via) < len(r.Via):
			r.Via, r.Discard = via, len(via) == 0
		case out[owner{"route", routeName(r)}]:
			continue
		}
		routes = append(routes, r)
	}
	s.Routes = routes
	return s
}

// keep returns a copy of all with the elements for which wanted returns true.
func keep[E any](all []E, wanted func(E) bool) []E {
	return slices.DeleteFunc(slices.Clone(all), func(e E) bool { return !wanted(e) })
}
