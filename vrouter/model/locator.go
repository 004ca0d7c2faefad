package model

import (
	"net/netip"
	"slices"
)

// LocatorBits is the length of a locator.
const LocatorBits = 64

// LocatorAddress returns the address of the node itself in its locator, to which other
// nodes send tests; zero: the node has no locator.
func (n Node) LocatorAddress() netip.Addr {
	if !n.Locator.IsValid() {
		return netip.Addr{}
	}
	return n.Locator.Masked().Addr().Next()
}

// locatorOf returns the locator of a node in the prefix Locators. It is zero if there is no
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

// locatorsBits is the length of the prefix of all locators: an IPv4 address follows.
const locatorsBits = LocatorBits - 32

func isLocators(p netip.Prefix) bool {
	return p.IsValid() && p.Addr().Is6() && p.Bits() == locatorsBits && usable(p.Addr()) && notCanonical(p) == ""
}

// checkLocator refuses a locator that the underlay cannot route to this node alone. owners
// has the nodes that were checked before, by locator.
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
		v.fail("node", n.Name, "locator: %s is already used by node %q; choose another", l, other)
	}
	owners[l] = n.Name
	for _, other := range v.s.Nodes {
		for _, a := range other.Underlay {
			if l.Contains(a) {
				v.fail("node", n.Name, "locator: %s has node %q's underlay address %s; choose another", l, other.Name, a)
			}
		}
	}
	for _, g := range v.s.Gateways {
		for _, a := range g.Addresses {
			if l.Contains(a) {
				v.fail("node", n.Name, "locator: %s has gateway %q's address %s; choose another", l, g.Name, a)
			}
		}
	}
}
