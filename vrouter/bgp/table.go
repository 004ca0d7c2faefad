package bgp

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"windtunnel/vrouter/model"
)

// Table has the paths that neighbours announced. After a restart of the agent it has those of
// before, as stale, until the neighbours have announced theirs again. So the node goes on to
// forward.
type Table struct {
	paths map[Key]Path
}

// NewTable returns a table of stale paths of a former run of the agent.
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

// Settle removes the stale paths of a neighbour in a family: it has announced all paths again. An
// invalid neighbour means all neighbours, and an empty family all families.
func (t *Table) Settle(neighbor netip.Addr, f model.BGPFamily) {
	maps.DeleteFunc(t.paths, func(_ Key, p Path) bool {
		return p.Stale && (!neighbor.IsValid() || p.Neighbor == neighbor) && (f == "" || p.Family == f)
	})
}

// Keep removes the paths of all but some neighbours.
func (t *Table) Keep(neighbors []model.Neighbor) {
	maps.DeleteFunc(t.paths, func(k Key, _ Path) bool {
		return !slices.ContainsFunc(neighbors, func(n model.Neighbor) bool { return n.Address == k.Neighbor })
	})
}

// Paths returns all paths, sorted.
func (t *Table) Paths() []Path {
	return slices.SortedFunc(maps.Values(t.paths), func(a, b Path) int {
		for _, order := range []int{
			strings.Compare(string(a.Family), string(b.Family)), strings.Compare(string(a.Kind), string(b.Kind)),
			a.Prefix.Compare(b.Prefix), slices.Compare(a.MAC[:], b.MAC[:]), slices.Compare(a.RD[:], b.RD[:]), a.Origin.Compare(b.Origin),
		} {
			if order != 0 {
				return order
			}
		}
		return a.Neighbor.Compare(b.Neighbor)
	})
}
