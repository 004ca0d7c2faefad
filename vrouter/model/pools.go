package model

import (
	"fmt"
	"net/netip"
	"strings"

	"windtunnel/internal/phrase"
)

// Range is a range of addresses, including First and Last. As text it is
// "10.1.0.10-10.1.0.99", or a prefix, or one address.
type Range struct {
	First, Last netip.Addr
}

// ParseRange parses a range.
func ParseRange(text string) (Range, error) {
	const form = "write two addresses such as 10.1.0.10-10.1.0.99, or a prefix"
	if p, err := netip.ParsePrefix(text); err == nil {
		return RangeOf(p), nil
	}
	first, last, two := strings.Cut(text, "-")
	if !two {
		last = first
	}
	a, err := netip.ParseAddr(first)
	if err != nil {
		return Range{}, fmt.Errorf("%q is not a range of addresses; %s", phrase.Clip(text), form)
	}
	b, err := netip.ParseAddr(last)
	if err != nil || a.Is4() != b.Is4() || b.Less(a) || a.Zone() != "" || b.Zone() != "" {
		return Range{}, fmt.Errorf("%q is not a range of addresses; %s", phrase.Clip(text), form)
	}
	return Range{a, b}, nil
}

// RangeOf returns all addresses of a prefix.
func RangeOf(p netip.Prefix) Range { return Range{p.Masked().Addr(), LastAddress(p)} }

// String formats a range as two addresses, or as one.
func (r Range) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

// MarshalText implements encoding.TextMarshaler.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Range) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRange(string(text))
	return err
}

// Contains reports whether an address is in the range.
func (r Range) Contains(a netip.Addr) bool {
	return a.Is4() == r.First.Is4() && !a.Less(r.First) && !r.Last.Less(a)
}

// intersection returns the addresses that are in both ranges.
func (r Range) intersection(o Range) (Range, bool) {
	if r.First.Less(o.First) {
		r.First = o.First
	}
	if o.Last.Less(r.Last) {
		r.Last = o.Last
	}
	return r, r.First.Is4() == o.First.Is4() && !r.Last.Less(r.First)
}

// LastAddress is the last address of a prefix.
func LastAddress(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(bytes); i++ {
		bytes[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(bytes) // the slice has 4 or 16 bytes
	return last
}

// Pools returns the address ranges of one family for the ports of a network, in
// the order of the subnets. The ranges exclude the subnet, router and broadcast
// addresses. If the network has ranges, Pools returns only addresses in these.
// If within is not empty, Pools returns only addresses in these ranges.
func Pools(n Network, within []Range, family func(netip.Addr) bool) (pools []Range) {
	for _, s := range n.Subnets {
		if !family(s.Addr()) {
			continue
		}
		last := LastAddress(s)
		if s.Addr().Is4() {
			last = last.Prev()
		}
		var ranges, parts []Range
		for _, r := range n.Ranges {
			if family(r.First) {
				ranges = append(ranges, r)
			}
		}
		for _, r := range within {
			if family(r.First) {
				parts = append(parts, r)
			}
		}
		hosts := []Range{{GatewayAddress(s).Next(), last}}
		pools = append(pools, intersect(intersect(hosts, ranges), parts)...)
	}
	return pools
}

// intersect returns the parts of all that are in others. If others is empty, it
// returns all.
func intersect(all, others []Range) (parts []Range) {
	if len(others) == 0 {
		return all
	}
	for _, r := range all {
		for _, o := range others {
			if part, any := r.intersection(o); any {
				parts = append(parts, part)
			}
		}
	}
	return parts
}
