package fib

import (
	"net/netip"

	"windtunnel/vrouter/model"
)

// locatorLink returns the test result for a node's locator: whether translated packets reach
// the node. It returns NoLink if one of the two nodes does not translate, or if no route
// over a fabric device leads to the locator.
func (c *compiler) locatorLink(n *model.Node) Link {
	if !c.self.Translates() || !n.Translates() {
		return NoLink
	}
	if paths, _ := c.facts.Way(c.self.LocatorAddress(), n.LocatorAddress()); len(paths) == 0 {
		return NoLink
	}
	return c.facts.Link(n.LocatorAddress(), 0)
}

// prefix6 returns the first 96 bits of a network's first IPv6 subnet; zero: the network has no
// IPv6 subnet. A translated packet has only the last 32 bits of IPv6 addresses. All nodes must
// have the same prefix, so it depends on the network alone.
func prefix6(n *network) (p netip.Prefix) {
	for _, s := range n.Subnets {
		if s.Addr().Is6() {
			p, _ = s.Masked().Addr().Prefix(96)
			break
		}
	}
	return p
}

// translate adds a nexthop that translates packets to a node. t is the tunnel to the
// node, which becomes the fallback of the nexthop; nil: there is no tunnel. translate adds
// the locator of every node to the remotes, because the guard drops packets to the locators
// in the remotes if the eBPF programs did not send them.
func (c *compiler) translate(n *model.Node, t *tunnel, needs payloads) {
	if !n.Locator.IsValid() {
		return
	}
	r := Remote{ID: c.remoteID(n.Name)}
	if c.self.Translates() && n.Translates() {
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
