package fib

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// IDs allocates ids to the names of nexthops, vifs and remotes. A name keeps its id
// as long as the name is in use. The agent saves the ids, so a restart does not
// change them: packets in flight and counters refer to them. Ids begin at 1. The
// zero value is ready for use.
type IDs struct {
	kinds map[string]*numbers
}

// numbers holds the ids of one kind of name, such as vifs.
type numbers struct {
	byName map[string]uint32
	taken  map[uint32]bool
	used   map[uint32]bool // numbers that were used since the last Prune
	next   uint32          // all smaller ids are in use
}

func (n *numbers) add(name string, id uint32) {
	n.byName[name], n.taken[id] = id, true
}

func (n *numbers) free(name string, id uint32) {
	delete(n.byName, name)
	delete(n.taken, id)
	n.next = min(n.next, id)
}

func newNumbers() *numbers {
	return &numbers{byName: map[string]uint32{}, taken: map[uint32]bool{}, used: map[uint32]bool{}, next: 1}
}

func (ids *IDs) kind(kind string) *numbers {
	if ids.kinds == nil {
		ids.kinds = map[string]*numbers{}
	}
	n := ids.kinds[kind]
	if n == nil {
		n = newNumbers()
		ids.kinds[kind] = n
	}
	return n
}

// get returns the id of a name. It allocates the smallest free id to a new name.
// limit is the largest id; 0: unlimited. The result is false if all ids are in use.
func (ids *IDs) get(kind, name string, limit uint32) (uint32, bool) {
	n := ids.kind(kind)
	if id, ok := n.byName[name]; ok && (limit == 0 || id <= limit) {
		n.used[id] = true
		return id, true
	} else if ok { // the limit was lowered: allocate another id
		n.free(name, id)
	}
	for n.taken[n.next] {
		n.next++
	}
	if limit != 0 && n.next > limit {
		return 0, false
	}
	n.add(name, n.next)
	n.used[n.next] = true
	return n.next, true
}

// Prune frees the ids of names that no Compile has used since the last Prune. Call
// Prune only after the tables of the last Compile are written to the data path:
// before that, old entries may still refer to these ids. If Compile has not run
// since the last Prune, Prune frees all ids.
func (ids *IDs) Prune() {
	for _, n := range ids.kinds {
		for name, id := range n.byName {
			if !n.used[id] {
				n.free(name, id)
			}
		}
		clear(n.used)
	}
}

// Vifs returns the number of ports with an id.
func (ids *IDs) Vifs() int { return len(ids.kind(kindVif).byName) }

// Clone returns a copy.
func (ids *IDs) Clone() *IDs {
	c := &IDs{}
	for kind, n := range ids.kinds {
		m := newNumbers()
		m.byName, m.taken, m.next = maps.Clone(n.byName), maps.Clone(n.taken), n.next
		c.kind(kind)
		c.kinds[kind] = m
	}
	return c
}

// MarshalJSONTo encodes the ids by kind and name.
func (ids *IDs) MarshalJSONTo(to *jsontext.Encoder) error {
	out := map[string]map[string]uint32{}
	for kind, n := range ids.kinds {
		out[kind] = n.byName
	}
	return json.MarshalEncode(to, out)
}

// UnmarshalJSON decodes the ids. It returns an error if two names have the same id,
// or if an id is 0.
func (ids *IDs) UnmarshalJSON(data []byte) error {
	var in map[string]map[string]uint32
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("decode the ids of table entries: %w", err)
	}
	*ids = IDs{}
	for kind, byName := range in {
		n := ids.kind(kind)
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			id := byName[name]
			if id == 0 || n.taken[id] {
				return fmt.Errorf("decode the ids of table entries: %s %q has id %d, which is 0 or used twice", kind, name, id)
			}
			n.add(name, id)
		}
	}
	return nil
}
