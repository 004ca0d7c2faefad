package model

import (
	"net/netip"
	"slices"
)

// LocatorBits is the length of a locator.
const LocatorBits = 64

// LocatorAddress returns the first address of the node's locator. It is the node's own
// address, to which other nodes send tests. It is zero if the node has no locator.
func (n Node) LocatorAddress() netip.Addr {
	if !n.Locator.IsValid() {
		return netip.Addr{}
	}
	return n.Locator.Masked().Addr().Next()
}

// Translates reports whether the node can exchange translated packets with other nodes. For
// this it must have a locator and offer Direct.
func (n Node) Translates() bool {
	return n.Locator.IsValid() && slices.Contains(n.Encapsulations, Direct)
}

// locatorOf derives the locator of a node from the prefix Locators. It is zero if there is no
// such prefix, or if the node has no IPv4 underlay address or does not offer Direct.
func (s Settings) locatorOf(n Node) netip.Prefix {
	i := slices.IndexFunc(n.Underlay, netip.Addr.Is4)
	if !isLocators(s.Locators) || i < 0 || !slices.Contains(n.Encapsulations, Direct) {
		return netip.Prefix{}
	}
	a, v4 := s.Locators.Addr().As16(), n.Underlay[i].As4()
	copy(a[locatorsBits/8:], v4[:])
	return netip.PrefixFrom(netip.AddrFrom16(a), LocatorBits)
}

// locatorsBits is the length of Settings.Locators. In a locator, an IPv4 address follows this
// prefix.
const locatorsBits = LocatorBits - 32

func isLocators(p netip.Prefix) bool {
	return p.IsValid() && p.Addr().Is6() && p.Bits() == locatorsBits && usable(p.Addr()) && notCanonical(p) == ""
}

// checkLocator refuses a locator that the underlay cannot route to this node alone. owners
// maps the locators of the nodes that were checked before to the names of these nodes.
func (v *validation) checkLocator(n Node, owners map[netip.Prefix]string) {
	l := n.Locator
	switch {
	case !l.IsValid():
		return
	case !l.Addr().Is6() || l.Bits() != LocatorBits || !usable(l.Addr()):
		v.fail("node", n.Name, "locator: %s is not a unicast IPv6 prefix of %d bits; write one such as fd00:0:0:17::/64", l, LocatorBits)
		return
	case notCanonical(l) != "":
		v.fail("node", n.Name, "locator: %s", notCanonical(l))
		return
	}
	if other, taken := owners[l]; taken {
		v.fail("node", n.Name, "locator: %s is already used by node %q; choose another prefix", l, other)
	}
	owners[l] = n.Name
	for _, other := range v.s.Nodes {
		for _, a := range other.Underlay {
			if l.Contains(a) {
				v.fail("node", n.Name, "locator: %s contains the underlay address %s of node %q; choose another prefix", l, a, other.Name)
			}
		}
	}
	for _, g := range v.s.Gateways {
		for _, a := range g.Addresses {
			if l.Contains(a) {
				v.fail("node", n.Name, "locator: %s contains the address %s of gateway %q; choose another prefix", l, a, g.Name)
			}
		}
	}
}
