package model

import "slices"

// Sound returns the part of a state that is valid, with the defaults filled in, and
// the problems of the rest; nil: the whole state is valid. It is for a state that
// others have written, so that one object's error does not stop all others. Of a
// port and an object of another kind that exclude each other the port is left out.
//
// A route loses the next hops that are left out. If it has no others it discards:
// its packets must not take a shorter route. Nodes that cannot reach each other are
// no problem here; Validate refuses them.
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
			return s, first // an error of the settings stays
		}
		s = s.without(v.faulty)
	}
	return s, first
}

// maxSoundRounds is more than the longest chain of objects that need each other.
const maxSoundRounds = 20

// without returns a state without some objects.
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

func keep[E any](all []E, wanted func(E) bool) []E {
	return slices.DeleteFunc(slices.Clone(all), func(e E) bool { return !wanted(e) })
}
