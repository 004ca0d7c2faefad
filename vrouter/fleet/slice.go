package fleet

import (
	"maps"
	"slices"

	"windtunnel/vrouter/model"
)

// Slice returns the part of the state that one node needs: all nodes, and the
// networks of NetworksOf, with their content. It omits ports on
// nodes that are gone, except this node's. A route avoids next hops on silent nodes
// if it has other next hops. If all next hops of a route are gone, the route discards
// packets. gone is the result of Fleet.Gone. A route also avoids ports whose workloads do not answer. The alive keys
// list such ports of other nodes, and silent lists those of this node. The slice shares its ports with the copy of the
// store; its State has no ports.
func (v *View) Slice(node string, gone map[string]bool, silent ...string) model.Slice {
	s := model.Slice{State: model.State{Settings: v.settings, Nodes: sorted(v.nodes), Policies: sorted(v.policies)}, Hops: map[string]*model.CompactPort{}}
	needed := v.NetworksOf(node)
	names := slices.Sorted(maps.Keys(needed))
	count := 0
	for _, name := range names {
		count += len(v.members[name])
	}
	s.All = make([]*model.CompactPort, 0, count)
	for _, name := range names {
		n, ok := v.networks[name]
		if !ok {
			continue
		}
		s.Networks = append(s.Networks, n)
		s.All = append(s.All, v.members[name]...)
		for _, r := range v.routesOf(name) {
			r = v.withoutGone(r, node, gone, silent)
			s.Routes = append(s.Routes, r)
			for _, w := range r.Via {
				if p := v.ports[w.Port]; p != nil && p.Network == name {
					s.Hops[p.Name] = &p.CompactPort
				}
			}
		}
	}
	for _, g := range sorted(v.gateways) {
		if g = model.GatewayIn(g, needed); len(g.Networks) > 0 {
			s.Gateways = append(s.Gateways, g)
		}
	}
	if slices.Contains(slices.Collect(maps.Values(gone)), true) {
		s.All = slices.DeleteFunc(s.All, func(p *model.CompactPort) bool { return p.Node != node && gone[p.Node] })
	}
	return s
}

// Alternatives returns the names of other nodes that are next hops of ECMP routes, in the networks
// of NetworksOf.
func (v *View) Alternatives(node string) map[string]bool {
	all := map[string]bool{}
	for network := range v.NetworksOf(node) {
		for _, r := range v.routes[network] {
			for _, w := range r.Via {
				if p := v.ports[w.Port]; len(r.Via) > 1 && p != nil && p.Node != node {
					all[p.Node] = true
				}
			}
		}
	}
	return all
}

// Peers returns the names of the other nodes that have ports in networks of NetworksOf.
func (v *View) Peers(node string) map[string]bool {
	all, needed := map[string]bool{}, v.NetworksOf(node)
	for other, networks := range v.hosts {
		for network := range networks {
			if needed[network] && other != node {
				all[other] = true
			}
		}
	}
	return all
}

// Hops returns the node's ports that are next hops of routes.
func (v *View) Hops(node string) (all []*model.CompactPort) {
	for network := range v.NetworksOf(node) {
		for _, r := range v.routes[network] {
			for _, w := range r.Via {
				if p := v.ports[w.Port]; p != nil && p.Node == node {
					all = append(all, &p.CompactPort)
				}
			}
		}
	}
	return all
}

// withoutGone removes two kinds of next hops from a route: those on silent nodes, and those whose workloads do not answer. If
// none would remain, it removes only the next hops on nodes that are gone.
func (v *View) withoutGone(r model.Route, node string, gone map[string]bool, silent []string) model.Route {
	if r.Discard {
		return r
	}
	without := func(avoid func(*model.CompactPort) bool) []model.Via {
		return slices.DeleteFunc(slices.Clone(r.Via), func(w model.Via) bool {
			p := v.ports[w.Port]
			return w.Port != "" && (p == nil || avoid(&p.CompactPort))
		})
	}
	all := r.Via
	r.Via = without(func(p *model.CompactPort) bool {
		if p.Node == node {
			return slices.Contains(silent, p.Name)
		}
		_, away := gone[p.Node]
		return away || slices.Contains(v.alive[p.Node].Silent, p.Name)
	})
	if len(r.Via) == 0 {
		r.Via = all
		r.Via = without(func(p *model.CompactPort) bool { return p.Node != node && gone[p.Node] })
	}
	r.Discard = len(r.Via) == 0
	return r
}
