package folded

import (
	"cmp"
	"slices"
)

// FlameNode is one box of a flame graph: a function where it was called from,
// and the CPU time that it and what it called took.
type FlameNode struct {
	Name     string
	Value    float64 // CPU seconds per second, with all children
	Samples  uint64  // with all children
	Category string  // that most of Value is in
	Children []*FlameNode
}

// Flame makes the tree of a profile. Its root is the whole side, below it are
// programs and below them their stacks. Idle time is left out.
func Flame(p *Profile) *FlameNode {
	return grow(p).flame()
}

// tree is a node while the graph is grown.
type tree struct {
	name     string
	value    float64
	samples  uint64
	by       map[string]float64 // value by category
	children map[string]*tree
}

func newTree(name string) *tree {
	return &tree{name: name, by: map[string]float64{}, children: map[string]*tree{}}
}

// grow builds the tree of a profile's stacks. Each value is CPU use in cores.
func grow(p *Profile) *tree {
	root := newTree("all")
	if p.Side != "" {
		root.name = p.Side
	}
	if p.Seconds <= 0 {
		return root
	}
	for i := range p.Stacks {
		s := &p.Stacks[i]
		if s.Category == Idle {
			continue
		}
		value := p.cpu(s) / p.Seconds
		at := root
		at.add(value, s)
		at = at.child(s.Comm)
		at.add(value, s)
		for _, f := range s.Frames {
			at = at.child(f)
			at.add(value, s)
		}
	}
	return root
}

func (t *tree) add(value float64, s *Stack) {
	t.value += value
	t.samples += s.Count
	t.by[s.Category] += value
}

func (t *tree) child(name string) *tree {
	c := t.children[name]
	if c == nil {
		c = newTree(name)
		t.children[name] = c
	}
	return c
}

// category is the one that most of the value is in.
func (t *tree) category() string {
	best := ""
	for name, v := range t.by {
		if best == "" || v > t.by[best] || v == t.by[best] && name < best {
			best = name
		}
	}
	return best
}

func (t *tree) flame() *FlameNode {
	n := &FlameNode{Name: t.name, Value: t.value, Samples: t.samples, Category: t.category()}
	for _, c := range t.children {
		n.Children = append(n.Children, c.flame())
	}
	slices.SortFunc(n.Children, func(a, b *FlameNode) int { return cmp.Compare(a.Name, b.Name) })
	return n
}
