package fleet

import (
	"maps"
	"slices"

	"windtunnel/vrouter/model"
)

// Slice returns the part of the state that one node needs: all nodes, and the
// networks that have ports on the node, with their content. It omits ports on
// nodes that are gone, except this node's. A route avoids next hops on silent nodes
// if it has other next hops. If all next hops of a route are gone, the route discards
// packets. gone is the result of Fleet.Gone.
func (v *View) Slice(node string, gone map[string]bool) model.State {
	s := model.State{Settings: v.settings, Nodes: sorted(v.nodes), Policies: sorted(v.policies)}
	names := slices.Sorted(maps.Keys(v.hosts[node]))
	count := 0
	for _, name := range names {
		count += len(v.members[name])
	}
	s.Ports = slices.Grow(s.Ports, count)
	for _, name := range names {
		n, ok := v.networks[name]
		if !ok {
			continue
		}
		s.Networks = append(s.Networks, n)
		for _, p := range v.members[name] {
			if p.Node == node || !gone[p.Node] {
				s.Ports = append(s.Ports, *p)
			}
		}
		for _, r := range v.routesOf(name) {
			s.Routes = append(s.Routes, v.withoutGone(r, node, gone))
		}
	}
	for _, g := range sorted(v.gateways) {
		if g = onlyNetworks(g, v.hosts[node]); len(g.Networks) > 0 {
			s.Gateways = append(s.Gateways, g)
		}
	}
	return s
}

// withoutGone removes the next hops on silent nodes from a route. If no next hop would
// remain, it removes only the next hops on nodes that are gone.
func (v *View) withoutGone(r model.Route, node string, gone map[string]bool) model.Route {
	if r.Discard {
		return r
	}
	without := func(avoid func(node string) bool) []model.Via {
		return slices.DeleteFunc(slices.Clone(r.Via), func(w model.Via) bool {
			p := v.ports[w.Port]
			return w.Port != "" && (p == nil || p.Node != node && avoid(p.Node))
		})
	}
	all := r.Via
	if r.Via = without(func(node string) bool { _, silent := gone[node]; return silent }); len(r.Via) == 0 {
		r.Via = all
		r.Via = without(func(node string) bool { return gone[node] })
	}
	r.Discard = len(r.Via) == 0
	return r
}

// onlyNetworks returns a gateway with only the given networks.
func onlyNetworks[V any](g model.Gateway, networks map[string]V) model.Gateway {
	g.Networks = slices.DeleteFunc(slices.Clone(g.Networks), func(n model.GatewayNetwork) bool {
		_, here := networks[n.Network]
		return !here
	})
	return g
}
