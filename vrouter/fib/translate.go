package fib

import (
	"net/netip"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// Locators are the lengths of the locators of this node and of another node. They decide which
// parts the addresses of packets between the nodes have. The values are equal to the data
// path's; bpf/translate.h describes the addresses.
const (
	NoLocators           uint8 = iota
	Locators64                 // both have 64 bits
	Locators64To80             // this node's has 64 bits, the other's 80
	Locators80To64             // this node's has 80 bits, the other's 64
	Locators80Adjustment       // both have 80 bits; the addresses of this node have the adjustment
	Locators80Network          // both have 80 bits; the addresses of this node have the network
)

// LocatorsOf returns the Locators of a node with the locator own and another node with the
// locator other. If own is zero, the node does not translate.
func LocatorsOf(own, other netip.Prefix) uint8 {
	longer := func(p netip.Prefix) bool { return p.Bits() == model.LongLocatorBits }
	switch {
	case longer(own) && longer(other) && own.Addr().Less(other.Addr()):
		return Locators80Adjustment
	case longer(own) && longer(other):
		return Locators80Network
	case longer(own):
		return Locators80To64
	case longer(other):
		return Locators64To80
	}
	return Locators64
}

// locatorLink returns the test result for a node's locator: whether translated packets reach
// the node. It returns NoLink if one of the two nodes does not translate, or if no route
// over a fabric device leads to the locator.
func (c *compiler) locatorLink(n *model.Node) Link {
	if h := c.facts.Handovers[n.Name]; !c.acceptsTranslated(n) || h.Accepts(model.Translated) && !h.Translates {
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
func prefix6(n *network) [3]uint32 {
	for _, s := range n.Subnets {
		if s.Addr().Is6() {
			return layout.Words96(s.Masked().Addr())
		}
	}
	return [3]uint32{}
}

// translate adds a nexthop that translates packets to a node. The tunnel to the node becomes
// the fallback of the nexthop. translate adds the locator of every node to the remotes, because
// the guard drops packets to the locators in the remotes if the eBPF programs did not send them.
func (c *compiler) translate(n *model.Node) {
	if !n.Locator.IsValid() {
		return
	}
	r := layout.Remote{ID: c.remoteID(n.Name), Locators: LocatorsOf(c.self.Locator, n.Locator)}
	if c.acceptsTranslated(n) {
		r.Encaps = layout.Bits(model.Translated)
	}
	for t := c.peers[n.Name]; t != nil; t = t.beyond {
		if t.translates && t.needs.ip {
			r.Nexthop = c.translated(n, t)
		}
	}
	c.t.Remotes[layout.AddressOf(n.Locator.Addr())] = r
}

// translated adds the nexthop that translates packets to a node.
func (c *compiler) translated(n *model.Node, t *tunnel) uint32 {
	nexthop := layout.Nexthop{Type: layout.Tunnel, Encap: layout.Number(model.Translated), Remote: c.remoteID(n.Name), DMAC: model.RouterMAC, Fallback: t.ip}
	paths, mtu := c.ways([]pair{{c.self.LocatorAddress(), n.LocatorAddress()}})
	nexthop.SetPaths(paths...)
	for i := range paths {
		p := &nexthop.Path[i]
		p.Source, p.Destination, p.Locators = layout.AddressOf(c.self.Locator.Addr()), layout.AddressOf(n.Locator.Addr()), LocatorsOf(c.self.Locator, n.Locator)
	}
	t.outer = t.ip
	nexthop.MTU = clampMTU(mtu - Overhead(model.Translated, false, false))
	t.ip = c.nexthop(tunnelPrefix+n.Name+" "+string(model.Translated), nexthop)
	if t.encap == model.Translated {
		t.mtu = mtu
	}
	return t.ip
}
