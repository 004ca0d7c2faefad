package bgp

import (
	"cmp"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// Table has the paths that neighbours announced. After a restart of the agent it begins with the paths of
// the previous run, marked as stale, so that the node keeps forwarding. Settle removes them when the
// neighbours have announced their paths again.
type Table struct {
	paths  map[Key]*Path
	counts map[source]int     // of paths
	hops   map[netip.Addr]int // of paths, by next hop
}

// source is a neighbour and the family of some of its paths.
type source struct {
	neighbor netip.Addr
	family   model.BGPFamily
}

func (p *Path) source() source { return source{p.Neighbor, p.Family} }

// NewTable returns a table with the paths of the agent's previous run, which become stale.
func NewTable(stale []Path) *Table {
	t := &Table{map[Key]*Path{}, map[source]int{}, map[netip.Addr]int{}}
	for _, p := range stale {
		p.Stale = true
		t.Put(p)
	}
	return t
}

// Put adds or replaces a path. It returns how many paths of the same family the neighbour has then.
func (t *Table) Put(p Path) int {
	t.Withdraw(p.Key())
	t.paths[p.Key()] = &p
	t.count(&p, 1)
	return t.counts[p.source()]
}

func (t *Table) count(p *Path, n int) {
	t.counts[p.source()] += n
	if t.hops[p.NextHop] += n; t.hops[p.NextHop] == 0 {
		delete(t.hops, p.NextHop)
	}
}

// Withdraw removes a path. It reports whether the table had it.
func (t *Table) Withdraw(k Key) bool {
	p := t.paths[k]
	if p != nil {
		t.count(p, -1)
		delete(t.paths, k)
	}
	return p != nil
}

// drop removes the paths for which gone returns true.
func (t *Table) drop(gone func(*Path) bool) {
	for k, p := range t.paths {
		if gone(p) {
			t.Withdraw(k)
		}
	}
}

// Settle removes the stale paths of a neighbour in a family, after the neighbour has announced all its
// paths again. An invalid neighbour stands for all neighbours, and an empty family for all families.
func (t *Table) Settle(neighbor netip.Addr, f model.BGPFamily) {
	t.drop(func(p *Path) bool {
		return p.Stale && (!neighbor.IsValid() || p.Neighbor == neighbor) && (f == "" || p.Family == f)
	})
}

// Keep removes all paths except those of the given neighbours.
func (t *Table) Keep(neighbors []model.Neighbor) {
	t.drop(func(p *Path) bool {
		return !slices.ContainsFunc(neighbors, func(n model.Neighbor) bool { return n.Address == p.Neighbor })
	})
}

// Paths returns the paths that have one of the targets, sorted; all paths if targets is nil. The result is never nil.
func (t *Table) Paths(targets map[model.RouteTarget]bool) []Path {
	var some []*Path
	for _, p := range t.paths {
		if targets == nil || slices.ContainsFunc(p.Targets, func(r model.RouteTarget) bool { return targets[r] }) {
			some = append(some, p)
		}
	}
	slices.SortFunc(some, compare)
	all := make([]Path, len(some))
	for i, p := range some {
		all[i] = *p
	}
	return all
}

// compare orders paths by what they lead to, and then by their neighbour.
func compare(a, b *Path) int {
	if c := cmp.Compare(a.Family, b.Family); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Kind, b.Kind); c != 0 {
		return c
	}
	if c := a.Prefix.Compare(b.Prefix); c != 0 {
		return c
	}
	return cmp.Or(slices.Compare(a.MAC[:], b.MAC[:]), slices.Compare(a.RD[:], b.RD[:]), a.Origin.Compare(b.Origin), a.Neighbor.Compare(b.Neighbor))
}
