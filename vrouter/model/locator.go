package model

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// Lengths of locators, in bits.
const (
	LocatorBits     = 64
	LongLocatorBits = 80
)

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
	if !isLocators(s.Locators) || s.Locators.Bits() != derivingBits || i < 0 || !slices.Contains(n.Encapsulations, Direct) {
		return netip.Prefix{}
	}
	a, v4 := s.Locators.Addr().As16(), n.Underlay[i].As4()
	copy(a[derivingBits/8:], v4[:])
	return netip.PrefixFrom(netip.AddrFrom16(a), LocatorBits)
}

const (
	// derivingBits is the length of a prefix Settings.Locators from which locators are
	// derived: an IPv4 address follows it.
	derivingBits = LocatorBits - 32
	// maxLocatorsBits is the largest length of Settings.Locators. Such a prefix has 255
	// locators for nodes.
	maxLocatorsBits = LocatorBits - 8
)

func isLocators(p netip.Prefix) bool {
	return p.IsValid() && p.Addr().Is6() && p.Bits() <= maxLocatorsBits && usable(p.Addr()) && notCanonical(p) == ""
}

// FreeLocator returns the first prefix of 64 bits in Settings.Locators that no node and no
// gateway uses, and that avoid does not refuse, after the prefix with the number 0. avoid nil:
// it refuses none. If Locators has 32 bits, this cannot be the
// derived locator of a later node: the low numbers are addresses in 0.0.0.0/8, which no node
// has. The state must be valid.
func (s State) FreeLocator(avoid func(netip.Prefix) error) (netip.Prefix, error) {
	pool := s.Settings.Locators
	if !isLocators(pool) {
		return netip.Prefix{}, fmt.Errorf("locator: auto needs a pool of locators, and the fleet has none; set settings.locators to an IPv6 prefix of at most %d bits, such as fd00:77::/48", maxLocatorsBits)
	}
	taken := map[netip.Prefix]bool{}
	add := func(a netip.Addr) {
		if p, err := a.Prefix(LocatorBits); err == nil && a.Is6() {
			taken[p] = true
		}
	}
	for _, n := range s.WithDefaults().Nodes {
		add(n.Locator.Addr())
		for _, a := range n.Underlay {
			add(a)
		}
	}
	for _, g := range s.Gateways {
		for _, a := range g.Addresses {
			add(a)
		}
	}
	b := pool.Addr().As16()
	first := binary.BigEndian.Uint64(b[:])
	last := first | (1<<(LocatorBits-pool.Bits()) - 1)
	for number := first + 1; ; number++ {
		binary.BigEndian.PutUint64(b[:], number)
		if p := netip.PrefixFrom(netip.AddrFrom16(b), LocatorBits); !taken[p] && (avoid == nil || avoid(p) == nil) {
			return p, nil
		}
		if number == last {
			return netip.Prefix{}, fmt.Errorf("locator: all prefixes of %d bits in the pool %s are used; delete nodes that will not come back, set settings.locators to another prefix, or give the node a locator of another prefix", LocatorBits, pool)
		}
	}
}

// LocatorOwners maps locators to the names of their nodes. Its map around has the first 64 bits
// of the locators of 80 bits.
type LocatorOwners struct{ of, around map[netip.Prefix]string }

// OwnersOfLocators returns the owners of the nodes' locators.
func OwnersOfLocators(nodes []Node) LocatorOwners {
	o := LocatorOwners{map[netip.Prefix]string{}, map[netip.Prefix]string{}}
	for _, n := range nodes {
		if n.Locator.IsValid() {
			o.add(n.Locator, n.Name)
		}
	}
	return o
}

// Overlapping returns the node whose locator overlaps a locator; "": there is none.
func (o LocatorOwners) Overlapping(l netip.Prefix) string {
	wide, _ := l.Addr().Prefix(LocatorBits)
	if l.Bits() == LocatorBits {
		return cmp.Or(o.of[l], o.around[l])
	}
	return cmp.Or(o.of[l], o.of[wide])
}

// Has reports whether a prefix is the locator of a node.
func (o LocatorOwners) Has(l netip.Prefix) bool { return o.of[l] != "" }

func (o LocatorOwners) add(l netip.Prefix, node string) {
	o.of[l] = node
	if wide, _ := l.Addr().Prefix(LocatorBits); l.Bits() != LocatorBits {
		o.around[wide] = node
	}
}

// checkLocator refuses a locator that the underlay cannot route to this node alone. owners
// has the locators of the nodes that were checked before.
func (v *validation) checkLocator(n Node, owners LocatorOwners) {
	l := n.Locator
	switch {
	case !l.IsValid():
		return
	case l.Addr().Is6() && l.Bits() > LongLocatorBits && usable(l.Addr()):
		v.fail("node", n.Name, "locator: %s is too long: the network needs 16 bits, and an address of a workload 32; write a prefix of %d or %d bits, or no locator: then packets take a tunnel", l, LocatorBits, LongLocatorBits)
		return
	case !l.Addr().Is6() || l.Bits() != LocatorBits && l.Bits() != LongLocatorBits || !usable(l.Addr()):
		v.fail("node", n.Name, "locator: %s is not a unicast IPv6 prefix of %d or %d bits; write one such as fd00:0:0:17::/64", l, LocatorBits, LongLocatorBits)
		return
	case notCanonical(l) != "":
		v.fail("node", n.Name, "locator: %s", notCanonical(l))
		return
	}
	if other := owners.Overlapping(l); other != "" {
		v.fail("node", n.Name, "locator: %s overlaps the locator of node %q; choose another prefix", l, other)
	}
	owners.add(l, n.Name)
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
