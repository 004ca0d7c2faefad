package folded

import (
	"cmp"
	"maps"
	"slices"
)

// FlameNode is one box of a flame graph: a function with one chain of callers. Its
// CPU time includes the functions that it calls.
type FlameNode struct {
	Name     string
	Value    float64 // CPU seconds per second, with all children
	Samples  uint64  // with all children
	Category string  // category with the largest part of Value
	Children []*FlameNode

	by     map[string]float64    // Value by category; nil after finish
	called map[string]*FlameNode // children by name; nil after finish
}

// Flame makes the tree of a profile. Its root is the whole side, below it are
// programs and below them their stacks. Idle time is left out.
func Flame(p *Profile) *FlameNode {
	root := newFlame(cmp.Or(p.Side, "all"))
	for i := range p.Stacks {
		s := &p.Stacks[i]
		if s.Category == Idle || p.Seconds <= 0 {
			continue
		}
		at := root
		at.add(p, s)
		for _, name := range append([]string{s.Comm}, s.Frames...) {
			at = at.child(name)
			at.add(p, s)
		}
	}
	root.finish()
	return root
}

func newFlame(name string) *FlameNode {
	return &FlameNode{Name: name, by: map[string]float64{}, called: map[string]*FlameNode{}}
}

func (n *FlameNode) add(p *Profile, s *Stack) {
	cores := p.cpu(s) / p.Seconds
	n.Value += cores
	n.Samples += s.Count
	n.by[s.Category] += cores
}

func (n *FlameNode) child(name string) *FlameNode {
	c := n.called[name]
	if c == nil {
		c = newFlame(name)
		n.called[name] = c
	}
	return c
}

// finish sets Category and Children of the node and of all nodes below it. Children
// are sorted by name.
func (n *FlameNode) finish() {
	for _, category := range slices.Sorted(maps.Keys(n.by)) {
		if n.Category == "" || n.by[category] > n.by[n.Category] {
			n.Category = category
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.called)) {
		n.called[name].finish()
		n.Children = append(n.Children, n.called[name])
	}
	n.by, n.called = nil, nil
}
