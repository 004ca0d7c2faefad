package fib

import (
	"net/netip"
	"slices"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// A network imports the routes of the networks in model.Leaks. A packet to such a route arrives in
// the network of its destination, by the label or VNI of that network. The networks have a fixed
// order: the network itself, then those whose routes it imports, by id. Of equal prefixes the first
// network's is used. All addresses of a subnet belong to the first network that has the subnet.

// importer is a network on this node that imports the routes of another network.
type importer struct {
	vrf uint32
	// without are prefixes in the subnets of the other network that belong to a network before it.
	without []netip.Prefix
}

func (i importer) equal(o importer) bool {
	return i.vrf == o.vrf && slices.Equal(i.without, o.without)
}

// imports reports whether the importer uses the route of a port of the other network to its address.
func (i importer) imports(a netip.Addr) bool {
	return !slices.ContainsFunc(i.without, func(p netip.Prefix) bool { return p.Contains(a) })
}

// claim is a prefix whose addresses belong to a network.
type claim struct {
	netip.Prefix
	network string
}

// claimed returns the first claim that contains a prefix, of the networks before other.
func (n *network) claimed(other *network, p netip.Prefix) (claim, bool) {
	for _, c := range n.claims {
		switch {
		case c.network == other.Name:
			return claim{}, false
		case c.Bits() <= p.Bits() && c.Overlaps(p):
			return c, true
		}
	}
	return claim{}, false
}

// findLeaks finds the networks whose routes the networks on this node import.
func (c *compiler) findLeaks() {
	leaks := model.Leaks(c.state.Networks)
	for i := range c.state.Networks {
		n := &c.state.Networks[i]
		if c.here[n.Name] == nil {
			continue
		}
		for _, name := range leaks[n.Name] {
			if c.nets[name] == nil {
				other, _ := c.state.Network(name)
				c.nets[name] = &network{Network: other, members: map[string]bool{}}
			}
			c.here[n.Name].imported = append(c.here[n.Name].imported, c.nets[name])
		}
	}
}

// importers decides which addresses of other networks each network on this node imports.
func (c *compiler) importers() {
	for i := range c.state.Networks {
		n := c.here[c.state.Networks[i].Name]
		if n == nil || len(n.imported) == 0 {
			continue
		}
		n.claims = append(n.claims, c.claimsOf(n)...)
		for _, other := range n.imported {
			i := importer{vrf: n.ID}
			for _, s := range other.Subnets {
				for _, claim := range n.claims {
					if claim.Overlaps(s) {
						i.without = append(i.without, claim.Prefix)
						c.warn(kindNetwork, n.Name, "network %q imports no routes of network %q within %s: network %q has addresses there too, and %s; change one of the subnets, or the route targets",
							n.Name, other.Name, claim.Prefix, claim.network, n.precedence(claim.network))
					}
				}
			}
			other.importers = append(other.importers, i)
			n.claims = append(n.claims, c.claimsOf(other)...)
		}
	}
	c.checkLeaks()
}

// checkLeaks warns about each node to which packets from other networks cannot be sent.
func (c *compiler) checkLeaks() {
	for _, node := range c.state.Nodes {
		for _, n := range c.state.Networks {
			n := c.nets[n.Name]
			if n == nil || len(n.importers) == 0 || !n.members[node.Name] {
				continue
			}
			if t := c.peers[node.Name].in(n); t != nil && t.leaked() == 0 {
				c.warn(kindTunnel, node.Name, "the ports of network %q on node %q cannot be reached from the networks that import its routes: packets to the node are translated, and a translated packet names the network of its sender; add a tunnel encapsulation such as vxlan to both nodes", n.Name, node.Name)
			}
		}
	}
}

// precedence says why the routes of another network come first in the network.
func (n *network) precedence(other string) string {
	if n.Name == other {
		return "a network's own routes come first"
	}
	return "its id is lower"
}

// claimsOf returns the subnets of a network, and its routes to single addresses.
func (c *compiler) claimsOf(n *network) (all []claim) {
	for _, s := range n.Subnets {
		all = append(all, claim{s, n.Name})
	}
	c.eachPrefix(n, func(p netip.Prefix, _ func() layout.Route) {
		if p.IsSingleIP() {
			all = append(all, claim{p, n.Name})
		}
	})
	return all
}

// eachPrefix calls visit for the prefixes of a network's static routes and gateways. leaked makes the
// route for the networks that import it.
func (c *compiler) eachPrefix(n *network, visit func(p netip.Prefix, leaked func() layout.Route)) {
	for _, r := range c.state.Routes {
		if r.Network == n.Name {
			visit(r.Prefix.Masked(), func() layout.Route {
				route, _ := c.staticRoute(r, n, "leak", (*tunnel).leaked)
				return route
			})
		}
	}
	for _, g := range c.state.Gateways {
		t := c.foreign[g.Name]
		gn, serves := g.Network(n.Name)
		if t == nil || !serves {
			continue
		}
		for _, p := range gn.Prefixes {
			visit(p.Masked(), func() layout.Route { return layout.Route{Nexthop: t.ip, Label: t.foreignLabel(gn, n, false)} })
		}
	}
}

// leakedRoutes adds the imported static routes and prefixes of gateways to the networks on this node.
func (c *compiler) leakedRoutes() {
	for i := range c.state.Networks {
		n := c.here[c.state.Networks[i].Name]
		if n == nil {
			continue
		}
		owners := map[netip.Prefix]string{}
		for _, other := range n.imported {
			c.eachPrefix(other, func(p netip.Prefix, leaked func() layout.Route) {
				if claim, covered := n.claimed(other, p); covered {
					c.warn(kindNetwork, n.Name, "network %q does not import the route %s of network %q: network %q has %s, and %s; change one of them, or the route targets",
						n.Name, p, other.Name, claim.network, claim.Prefix, n.precedence(claim.network))
					return
				}
				if _, has := c.t.Routes[RouteKey{VRF: n.ID, Prefix: p}]; has {
					owner, taken := owners[p]
					if !taken {
						owner = n.Name
					}
					c.warn(kindNetwork, n.Name, "network %q does not import the route %s of network %q: network %q has one too, and %s; change one of them, or the route targets",
						n.Name, p, other.Name, owner, n.precedence(owner))
					return
				}
				owners[p] = other.Name
				c.addRoute(n, p, leaked())
			})
		}
	}
}

// leaked returns the nexthop for packets that leave the network of their sender. A translated packet
// names the network of its sender, so these packets have outer headers. 0: they cannot be sent.
func (t *tunnel) leaked() uint32 {
	if t.translates {
		return t.outer
	}
	return t.ip
}
