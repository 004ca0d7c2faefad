package fib

import (
	"net/netip"
	"slices"

	"windtunnel/vrouter/layout"
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
	for _, p := range append(everything, netip.Prefix{}) {
		c.t.Senders[layout.SenderOf(n.ID, id, p)] = layout.Sender{Known: 1}
	}
}

// accepted returns the encapsulations that this node accepts from another node: all that both
// nodes offer, not only the preferred one, and those that both offered until a short time ago.
// While the encapsulations change, the two nodes may prefer different ones for a short time.
func (c *compiler) accepted(n *model.Node) (all []model.Encapsulation) {
	common, h := commonEncapsulations(*c.self, *n), c.facts.Handovers[n.Name]
	for _, e := range model.DefaultEncapsulations {
		if slices.Contains(common, e) || h.Accepts(e) {
			all = append(all, e)
		}
	}
	return all
}

// acceptsTranslated is like accepted, for translated packets.
func (c *compiler) acceptsTranslated(n *model.Node) bool {
	both := c.self.Translates() && n.Translates()
	return both || c.self.Locator.IsValid() && n.Locator.IsValid() && c.facts.Handovers[n.Name].Accepts(model.Translated)
}

// sendable returns the encapsulations with which this node may send to another node, best first.
// The other node may not know the last ones yet; recent is their number.
func (c *compiler) sendable(n *model.Node) (all []model.Encapsulation, recent int) {
	if h, changes := c.facts.Handovers[n.Name]; changes {
		return h.Send, h.Recent
	}
	return commonEncapsulations(*c.self, *n), 0
}
