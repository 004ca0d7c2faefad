package fib

import (
	"fmt"
	"net/netip"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// staticRoutes adds the static routes. A route with several next hops is ECMP. A
// route without a reachable next hop discards packets. Without it, the packets would
// take the route of a shorter prefix.
func (c *compiler) staticRoutes() {
	for _, r := range c.state.Routes {
		n := c.here[r.Network]
		if n == nil || !n.Routes() {
			continue
		}
		route, reachable := c.staticRoute(r, n, "ecmp", func(t *tunnel) uint32 { return t.ip })
		if !reachable && !r.Discard {
			c.warn(kindRoute, r.Network+" "+r.Prefix.String(), "route %s of network %q has no reachable next hop: its packets are dropped", r.Prefix, r.Network)
		}
		c.t.Routes[RouteKey{VRF: n.ID, Prefix: r.Prefix.Masked()}] = route
	}
}

// staticRoute makes a route of a network. through returns the nexthop of a tunnel to a node. kind is
// the first word of the name if the nexthop is a composite.
func (c *compiler) staticRoute(r model.Route, n *network, kind string, through func(*tunnel) uint32) (route layout.Route, reachable bool) {
	var members []layout.Member
	for _, v := range r.Via {
		if m, ok := c.via(v, n, through); ok {
			members = append(members, m)
		}
	}
	switch {
	case len(members) == 0:
		return route, false
	case len(members) == 1 && len(r.Via) == 1:
		return layout.Route{Nexthop: members[0].Nexthop, Label: members[0].Label}, true
	}
	// a composite even with one member left: flows refer to the composite's id
	route.Nexthop = c.nexthop(fmt.Sprintf("%s %s %s", kind, r.Network, r.Prefix), layout.Nexthop{Type: layout.Composite, VRF: n.ID}, members...)
	return route, true
}

// subnets adds a route that discards packets to unused addresses of a subnet, also of a network
// whose routes are imported. Without it these packets would leave the network by a route with a shorter
// prefix, such as a default route to a gateway.
func (c *compiler) subnets() {
	for _, n := range c.here {
		if !n.Routes() {
			continue
		}
		for _, of := range append([]*network{n}, n.imported...) {
			for _, s := range of.Subnets {
				if _, covered := n.claimed(of, s); !covered && c.hasShorter(RouteKey{VRF: n.ID, Prefix: s.Masked()}) {
					c.addRoute(n, s, layout.Route{})
				}
			}
		}
	}
}

// hasShorter reports whether there is a route with a shorter prefix that contains the
// prefix of k.
func (c *compiler) hasShorter(k RouteKey) bool {
	for bits := range k.Prefix.Bits() {
		if _, has := c.t.Routes[RouteKey{VRF: k.VRF, Prefix: netip.PrefixFrom(k.Prefix.Addr(), bits).Masked()}]; has {
			return true
		}
	}
	return false
}

// via returns the composite member for a next hop; false: this node cannot reach the
// next hop. through is as in staticRoute.
func (c *compiler) via(v model.Via, n *network, through func(*tunnel) uint32) (layout.Member, bool) {
	if v.Gateway != "" {
		return c.viaGateway(v.Gateway, n)
	}
	p := c.state.Hops[v.Port]
	if p == nil {
		return layout.Member{}, false
	}
	if p.Node == c.self.Name {
		id, connected := c.encaps[p.Name]
		return layout.Member{Nexthop: id}, connected
	}
	t := c.peers[p.Node].in(n)
	if t == nil {
		return layout.Member{}, false
	}
	id := through(t)
	return layout.Member{Nexthop: id, Label: t.label(n, false)}, id != 0
}

func (c *compiler) viaGateway(name string, n *network) (layout.Member, bool) {
	t := c.foreign[name]
	g, _ := c.state.Gateway(name)
	gn, serves := g.Network(n.Name)
	if t == nil || !serves {
		return layout.Member{}, false
	}
	return layout.Member{Nexthop: t.ip, Label: t.foreignLabel(gn, n, false)}, true
}
