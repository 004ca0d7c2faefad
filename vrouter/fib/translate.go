package fib

import (
	"slices"

	"windtunnel/vrouter/model"
)

// located reports whether translated packets reach a node. It returns NoLink if one of the
// two nodes has no locator, or if no fabric device leads to the other node's locator.
func (c *compiler) located(n *model.Node) Link {
	if !c.translatesTo(n) {
		return NoLink
	}
	if paths, _ := c.facts.Way(c.self.LocatorAddress(), n.LocatorAddress()); len(paths) == 0 {
		return NoLink
	}
	return c.facts.Link(n.LocatorAddress(), 0)
}

// translatesTo reports whether both nodes have locators and offer direct.
func (c *compiler) translatesTo(n *model.Node) bool {
	return c.self.Locator.IsValid() && n.Locator.IsValid() && slices.Contains(offeredByBoth(*c.self, *n), model.Direct)
}

// translate adds a nexthop that translates IPv4 packets to a node. t is the tunnel to the
// node; nil: none. It becomes the fallback. The locator of every node is a remote: the
// guard drops packets to it that the programs did not send.
func (c *compiler) translate(n *model.Node, t *tunnel, needs payloads) {
	if !n.Locator.IsValid() {
		return
	}
	r := Remote{ID: c.remoteID(n.Name)}
	if c.translatesTo(n) {
		r.Encapsulations = []model.Encapsulation{model.Translated}
	}
	if t != nil && t.translates && needs.ip {
		nexthop := Nexthop{Type: Tunnel, Encapsulation: model.Translated, Remote: r.ID, DMAC: model.RouterMAC, Fallback: t.ip}
		paths, mtu := c.ways([]pair{{c.self.LocatorAddress(), n.LocatorAddress()}})
		for _, p := range paths {
			p.Source, p.Destination = c.self.Locator.Addr(), n.Locator.Addr()
			nexthop.Paths = append(nexthop.Paths, p)
		}
		nexthop.MTU = clampMTU(mtu - Overhead(model.Translated, false, false))
		r.Nexthop = c.nexthop("tunnel "+n.Name+" "+string(model.Translated), nexthop)
		t.ip = r.Nexthop
		if t.encap == model.Translated {
			t.mtu = mtu
		}
	}
	c.t.Remotes[n.Locator.Addr()] = r
}
