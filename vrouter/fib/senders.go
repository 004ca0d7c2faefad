package fib

import (
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// senders notes what nodes and gateways may send in the networks that are here,
// beside the addresses and stations that routes and bridge entries lead to them
// for: the prefixes that ports may send from, and everything from a gateway that
// serves the network.
func (c *compiler) senders() {
	for i := range c.state.Ports {
		p := &c.state.Ports[i]
		n := c.here[p.Network]
		if n == nil || p.Node == c.self.Name || len(p.AllowSources) == 0 {
			continue
		}
		for _, s := range p.AllowSources {
			c.t.Senders[SenderKey{VRF: n.ID, Remote: c.remoteID(p.Node), Prefix: s.Masked()}] = true
		}
	}
	for _, g := range c.state.Gateways {
		for _, gn := range g.Networks {
			if n := c.here[gn.Network]; n != nil {
				c.gatewaySends(n, c.remoteID(gatewayName(g.Name)))
			}
		}
	}
}

func (c *compiler) gatewaySends(n *network, id uint32) {
	for _, all := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		c.t.Senders[SenderKey{VRF: n.ID, Remote: id, Prefix: netip.PrefixFrom(all, 0)}] = true
	}
	c.t.Senders[SenderKey{VRF: n.ID, Remote: id}] = true
}

// offeredByBoth are the encapsulations that two nodes may use with each other.
// All of them are accepted, not the best alone: while the lists change the two
// may choose differently for a moment.
func offeredByBoth(a, b model.Node) (both []model.Encapsulation) {
	for _, e := range model.DefaultEncapsulations {
		if slices.Contains(a.Encapsulations, e) && slices.Contains(b.Encapsulations, e) {
			both = append(both, e)
		}
	}
	return both
}
