package folded

import (
	"cmp"
	"maps"
	"slices"
)

// DiffNode is one box of a differential flame graph.
type DiffNode struct {
	Name     string
	Category string  // that most of it is in, of both
	A, B     float64 // in each profile, with all children: cores, or CPU-ns per byte
	Children []*DiffNode
}

// Delta is what B has more than A.
func (n *DiffNode) Delta() float64 { return n.B - n.A }

// DiffFlame holds profile b against a. What is compared is cores; where both
// rates are above 0, cores over rate instead: with payload bytes per second
// A and B are CPU nanoseconds per byte. Idle time is left out.
func DiffFlame(a, b *Profile, rateA, rateB float64) *DiffNode {
	scaleA, scaleB := 1.0, 1.0
	if rateA > 0 && rateB > 0 {
		scaleA, scaleB = 1e9/rateA, 1e9/rateB
	}
	return diff(grow(a, scaleA), grow(b, scaleB))
}

func diff(a, b *tree) *DiffNode {
	n := &DiffNode{}
	both := newTree("")
	names := map[string]bool{}
	for _, t := range []*tree{a, b} {
		if t == nil {
			continue
		}
		n.Name = t.name
		for c, v := range t.by {
			both.by[c] += v
		}
		for name := range t.children {
			names[name] = true
		}
	}
	n.Category = both.category()
	if a != nil {
		n.A = a.value
	}
	if b != nil {
		n.B = b.value
	}
	for name := range maps.Keys(names) {
		var ca, cb *tree
		if a != nil {
			ca = a.children[name]
		}
		if b != nil {
			cb = b.children[name]
		}
		n.Children = append(n.Children, diff(ca, cb))
	}
	slices.SortFunc(n.Children, func(x, y *DiffNode) int { return cmp.Compare(x.Name, y.Name) })
	return n
}
