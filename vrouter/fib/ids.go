package fib

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// IDs allocates ids to names of nexthops and vifs. A name keeps its id while it is
// in use, also over restarts, since packets in flight and counters refer to ids.
// Ids begin at 1. The zero value is ready for use.
type IDs struct {
	kinds map[string]*numbers
}

// numbers are the ids of one kind.
type numbers struct {
	byName map[string]uint32
	taken  map[uint32]bool
	used   map[string]bool // since the last Prune
	next   uint32          // no smaller id is free
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
	return &numbers{byName: map[string]uint32{}, taken: map[uint32]bool{}, used: map[string]bool{}, next: 1}
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
// limit is the largest id, 0: unlimited. It returns false if all ids are in use.
func (ids *IDs) get(kind, name string, limit uint32) (uint32, bool) {
	n := ids.kind(kind)
	n.used[name] = true
	if id, ok := n.byName[name]; ok && (limit == 0 || id <= limit) {
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
	return n.next, true
}

// Prune frees the ids of names that no Compile has used since the last Prune. Call
// it once the data path has the tables of the last Compile: until then old table
// entries may refer to a freed id. Without a Compile since the last Prune it frees
// all ids.
func (ids *IDs) Prune() {
	for _, n := range ids.kinds {
		for name, id := range n.byName {
			if !n.used[name] {
				n.free(name, id)
			}
		}
		n.used = map[string]bool{}
	}
}

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

// MarshalJSON encodes the ids by kind and name.
func (ids *IDs) MarshalJSON() ([]byte, error) {
	out := map[string]map[string]uint32{}
	for kind, n := range ids.kinds {
		out[kind] = n.byName
	}
	return json.Marshal(out)
}

// UnmarshalJSON decodes the ids. An id of two names is an error.
func (ids *IDs) UnmarshalJSON(data []byte) error {
	var in map[string]map[string]uint32
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("read the ids of nexthops and vifs: %w", err)
	}
	*ids = IDs{}
	for kind, byName := range in {
		n := ids.kind(kind)
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			id := byName[name]
			if id == 0 || n.taken[id] {
				return fmt.Errorf("read the ids of nexthops and vifs: %s %q has id %d, which is 0 or used twice", kind, name, id)
			}
			n.add(name, id)
		}
	}
	return nil
}
