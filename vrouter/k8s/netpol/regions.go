package netpol

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// regions divides the addresses by the ipBlocks that contain them. Its prefixes are those of all ipBlocks and of
// their exceptions. Two addresses with the same longest prefix are in the same ipBlocks.
type regions struct {
	blocks  map[*peer]bool
	all     map[netip.Prefix]*region // nil: not known
	lengths map[bool][]int           // of the prefixes of IPv4 (true) and IPv6, longest first
	version int
}

type region struct {
	peers []*peer
	text  string  // of peers
	named []*peer // those of peers that are in egress rules with named ports
}

func (r *regions) add(p *peer) {
	if r.blocks == nil {
		r.blocks = map[*peer]bool{}
	}
	r.blocks[p] = true
	r.changed()
}

func (r *regions) changed() { r.all, r.version = nil, r.version+1 }

func (r *regions) remove(p *peer) {
	if r.blocks[p] {
		delete(r.blocks, p)
		r.changed()
	}
}

// find computes the regions after a change.
func (r *regions) find() {
	if r.all != nil {
		return
	}
	r.all, r.lengths = map[netip.Prefix]*region{}, map[bool][]int{}
	for b := range r.blocks {
		for _, p := range append([]netip.Prefix{b.block}, b.except...) {
			if r.all[p] == nil {
				r.all[p] = &region{}
				r.lengths[p.Addr().Is4()] = append(r.lengths[p.Addr().Is4()], p.Bits())
			}
		}
	}
	for is4, all := range r.lengths {
		slices.Sort(all)
		slices.Reverse(all)
		r.lengths[is4] = slices.Compact(all)
	}
	contains := func(p, q netip.Prefix) bool { return p.Bits() <= q.Bits() && p.Contains(q.Addr()) }
	blocks := slices.SortedFunc(maps.Keys(r.blocks), func(a, b *peer) int { return cmp.Compare(a.text, b.text) })
	for p, of := range r.all {
		var text strings.Builder
		for _, b := range blocks {
			if !contains(b.block, p) || slices.ContainsFunc(b.except, func(e netip.Prefix) bool { return contains(e, p) }) {
				continue
			}
			of.peers = append(of.peers, b)
			text.WriteString(b.text + "\x00")
			if b.named > 0 {
				of.named = append(of.named, b)
			}
		}
		of.text = text.String()
	}
}

// of returns the region of an address; nil: no ipBlock has it.
func (r *regions) of(a netip.Addr) *region {
	for _, bits := range r.lengths[a.Is4()] {
		p, _ := a.Prefix(bits)
		if found := r.all[p]; found != nil {
			return found
		}
	}
	return nil
}
