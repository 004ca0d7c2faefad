package fib

import (
	"net/netip"

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
			for _, p := range everything {
				c.addRoute(n, p, layout.Route{Nexthop: id})
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
