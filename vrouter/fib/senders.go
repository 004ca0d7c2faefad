package fib

import (
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// senders adds the sources that gateways may use in this node's networks. A remote may
// always use the addresses and MACs whose routes and bridge entries lead to that remote. In
// addition, a gateway may use any source in the networks that it serves, and a node may use
// the allow_sources of its ports (leg.addSenders).
func (c *compiler) senders() {
	for _, g := range c.state.Gateways {
		for _, gn := range g.Networks {
			if n := c.here[gn.Network]; n != nil {
				c.allowAnySource(n, c.remoteID(gatewayName(g.Name)))
			}
		}
	}
}

// allowAnySource lets a remote send from any address and MAC address in a network.
func (c *compiler) allowAnySource(n *network, id uint32) {
	for _, all := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		c.t.Senders[SenderKey{VRF: n.ID, Remote: id, Prefix: netip.PrefixFrom(all, 0)}] = true
	}
	c.t.Senders[SenderKey{VRF: n.ID, Remote: id}] = true
}

// offeredByBoth returns the encapsulations that both nodes offer. A node accepts all
// of them, not only the preferred one: while a node's list changes, the two nodes
// may prefer different ones for a short time.
func offeredByBoth(a, b model.Node) (both []model.Encapsulation) {
	for _, e := range model.DefaultEncapsulations {
		if slices.Contains(a.Encapsulations, e) && slices.Contains(b.Encapsulations, e) {
			both = append(both, e)
		}
	}
	return both
}
