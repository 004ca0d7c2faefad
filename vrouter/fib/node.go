package fib

import (
	"net/netip"
	"slices"

	"windtunnel/vrouter/layout"
)

// nodeRoutes adds the routes of networks with node_access. Packets to addresses outside the
// network's subnets go to this node's kernel, through the port that connects the node. A
// static route to the same prefix replaces this route. The kernel also has routes to the
// subnets of the other networks that have such a port. Routes that discard packets keep these
// networks apart.
func (c *compiler) nodeRoutes() {
	for _, n := range c.here {
		if n.host == nil {
			continue
		}
		for i := range c.state.Ports {
			p := &c.state.Ports[i]
			if other := c.here[p.Network]; p.Attach.Host && other != nil && other != n {
				for _, s := range other.Subnets {
					c.addRoute(n, s, layout.Route{})
				}
			}
		}
		if id, connected := c.encaps[n.host.Name]; connected {
			outside := c.nat(n, id)
			for _, p := range everything {
				way := layout.Route{Nexthop: id}
				if slices.ContainsFunc(n.NATPool, func(pool netip.Prefix) bool { return pool.Addr().Is4() == p.Addr().Is4() }) {
					way.Nexthop = outside
				}
				c.addRoute(n, p, way)
			}
		}
	}
}

// addRoute adds a route, unless there is a route to the same prefix.
func (c *compiler) addRoute(n *network, to netip.Prefix, r layout.Route) {
	key := RouteKey{VRF: n.ID, Prefix: to.Masked()}
	if _, has := c.t.Routes[key]; !has {
		c.t.Routes[key] = r
	}
}

// probes returns the rules that admit packets from this node to the ports of a network with
// node_access: a node probes the health of its workloads, whatever their policies are.
func (n *network) probes() (rules []layout.Rule) {
	for _, a := range n.host.IPs {
		rules = append(rules, layout.Rule{Flags: layout.RuleAllow | layout.RuleAlways, LastPort: 65535}.With(netip.PrefixFrom(a, a.BitLen())))
	}
	return rules
}

// nat adds the node's addresses in the network's pool, and the floating addresses of its ports. It returns the nexthop for
// packets that NAT must translate. host is the nexthop of the port that connects the node.
func (c *compiler) nat(n *network, host uint32) uint32 {
	if len(n.NATPool) == 0 {
		return host
	}
	out := c.t.Nexthops[host]
	out.Flags |= layout.NexthopNAT
	own := n.NodeShare(*n.host)
	nat := layout.NAT{VRF: n.ID, FirstPort: own.FirstPort, LastPort: own.LastPort}
	if a := n.NodeAddress(*n.host, netip.Addr.Is4); a.IsValid() {
		nat.Address4 = layout.AddressOf(a)
	}
	if a := n.NodeAddress(*n.host, netip.Addr.Is6); a.IsValid() {
		nat.Address6 = layout.AddressOf(a)
	}
	c.t.NATs[out.Vif] = nat
	id := c.nexthop("outside "+n.Name, out)
	for i := range c.state.Ports {
		p := &c.state.Ports[i]
		if p.Network != n.Name || p == n.host || c.encaps[p.Name] == 0 {
			continue
		}
		for _, a := range p.Floating {
			inside, outside := layout.AddressOf(p.Inside(a)), layout.AddressOf(a)
			c.t.Floatings[layout.FloatingKey{Vif: out.Vif, Address: inside}] = layout.Floating{Other: outside}
			c.t.Floatings[layout.FloatingKey{Vif: out.Vif, Address: outside}] = layout.Floating{Other: inside}
			c.t.Floatings[layout.FloatingKey{Vif: c.t.Nexthops[c.encaps[p.Name]].Vif, Address: inside}] = layout.Floating{Other: outside}
			c.addRoute(n, netip.PrefixFrom(a, a.BitLen()), layout.Route{Nexthop: id, Flags: layout.RouteFloating})
		}
	}
	c.shareAddresses(n, out.Vif, id, own.Addresses)
	return id
}

// shareAddresses adds the other nodes that have ports of this node's addresses in the pool, and routes for packets that these
// nodes send to the addresses. vif connects this node, and outside is the nexthop out of the network.
func (c *compiler) shareAddresses(n *network, vif, outside uint32, own []netip.Addr) {
	if n.host.NATSlot == 0 {
		return
	}
	for _, a := range own {
		c.addRoute(n, netip.PrefixFrom(a, a.BitLen()), layout.Route{Nexthop: outside, Flags: layout.RouteFloating})
	}
	for at := range c.count {
		if at.network != n.Name || at.node == c.self.Name {
			continue
		}
		for _, p := range c.state.On(at.network, at.node) {
			port := p.Port()
			share := n.NodeShare(port)
			for _, a := range share.Addresses {
				if inside := port.Inside(a); slices.Contains(own, a) && inside.IsValid() {
					c.t.Floatings[layout.FloatingKey{Vif: vif, Address: layout.AddressOf(a), Port: uint32(share.FirstPort)}] = layout.Floating{Other: layout.AddressOf(inside)}
				}
			}
		}
	}
}
