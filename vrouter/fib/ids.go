package fib

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// IDs gives numbers to things by their names: nexthops, vifs. A name keeps its
// number as long as it is in use, over restarts too: packets in flight and
// readers of counters know things by number. Numbers begin at 1. The zero value
// is ready for use.
type IDs struct {
	kinds map[string]*numbers
}

// numbers of one kind.
type numbers struct {
	byName map[string]uint32
	taken  map[uint32]bool
	used   map[string]bool // since the last Prune
	next   uint32          // the least that may be free
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

// get returns the number of a name, and gives it the least free one where it has
// none. limit is the largest number, 0 for none; false when all are taken.
func (ids *IDs) get(kind, name string, limit uint32) (uint32, bool) {
	n := ids.kind(kind)
	n.used[name] = true
	if id, ok := n.byName[name]; ok && (limit == 0 || id <= limit) {
		return id, true
	} else if ok { // the limit was lowered: it moves
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

// Prune frees the numbers of names that no Compile asked for since the last
// Prune: it is due once the data path holds the last Compile's tables. Until
// then a freed number may still be pointed at, so nobody else gets it. Without a
// Compile before it, it frees them all.
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

// Clone returns a copy that can be tried and thrown away.
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

// MarshalJSON writes the numbers by kind and name.
func (ids *IDs) MarshalJSON() ([]byte, error) {
	out := map[string]map[string]uint32{}
	for kind, n := range ids.kinds {
		out[kind] = n.byName
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads them; a number that two names have is an error.
func (ids *IDs) UnmarshalJSON(data []byte) error {
	var in map[string]map[string]uint32
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("read the numbers of nexthops and vifs: %w", err)
	}
	*ids = IDs{}
	for kind, byName := range in {
		n := ids.kind(kind)
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			id := byName[name]
			if id == 0 || n.taken[id] {
				return fmt.Errorf("read the numbers of nexthops and vifs: %s %q has number %d, which is taken or none", kind, name, id)
			}
			n.add(name, id)
		}
	}
	return nil
}
