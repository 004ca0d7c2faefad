package bgp

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// Table has the paths that neighbours announced. After a restart of the agent it begins with the paths of
// the previous run, marked as stale, so that the node keeps forwarding. Settle removes them when the
// neighbours have announced their paths again.
type Table struct {
	paths map[Key]Path
}

// NewTable returns a table with the paths of the agent's previous run, which become stale.
func NewTable(stale []Path) *Table {
	t := &Table{map[Key]Path{}}
	for _, p := range stale {
		p.Stale = true
		t.paths[p.Key()] = p
	}
	return t
}

// Put adds or replaces a path.
func (t *Table) Put(p Path) { t.paths[p.Key()] = p }

// Withdraw removes a path.
func (t *Table) Withdraw(k Key) { delete(t.paths, k) }

// Settle removes the stale paths of a neighbour in a family, after the neighbour has announced all its
// paths again. An invalid neighbour stands for all neighbours, and an empty family for all families.
func (t *Table) Settle(neighbor netip.Addr, f model.BGPFamily) {
	maps.DeleteFunc(t.paths, func(_ Key, p Path) bool {
		return p.Stale && (!neighbor.IsValid() || p.Neighbor == neighbor) && (f == "" || p.Family == f)
	})
}

// Keep removes all paths except those of the given neighbours.
func (t *Table) Keep(neighbors []model.Neighbor) {
	maps.DeleteFunc(t.paths, func(k Key, _ Path) bool {
		return !slices.ContainsFunc(neighbors, func(n model.Neighbor) bool { return n.Address == k.Neighbor })
	})
}

// Paths returns all paths, sorted. The result is never nil.
func (t *Table) Paths() []Path {
	all := slices.AppendSeq([]Path{}, maps.Values(t.paths))
	slices.SortFunc(all, func(a, b Path) int {
		return cmp.Or(
			cmp.Compare(a.Family, b.Family), cmp.Compare(a.Kind, b.Kind), a.Prefix.Compare(b.Prefix), slices.Compare(a.MAC[:], b.MAC[:]),
			slices.Compare(a.RD[:], b.RD[:]), a.Origin.Compare(b.Origin), a.Neighbor.Compare(b.Neighbor),
		)
	})
	return all
}
