package datapath

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"windtunnel/vrouter/layout"
)

// table is one map with the types of its keys and values.
type table[K, V comparable] struct {
	name  string
	m     *ebpf.Map
	array bool // entries are never absent: zero means nothing
}

// Entries at a time, and bytes of values at a time. Of a hash map less than a
// bucket cannot be read: batches are never small.
const (
	batch      = 4096
	batchBytes = 1 << 17
	leastBatch = 64
)

func (t table[K, V]) batch() int {
	n := max(leastBatch, min(batch, batchBytes/int(max(t.m.ValueSize(), 1))))
	return min(n, int(t.m.MaxEntries()))
}

func isNoBatch(err error) bool { return errors.Is(err, ebpf.ErrNotSupported) }

// each calls f with every entry; for an array with every entry that is not zero.
func (t table[K, V]) each(f func(K, V)) error {
	var cursor ebpf.MapBatchCursor
	keys, values := make([]K, t.batch()), make([]V, t.batch())
	for {
		n, err := t.m.BatchLookup(&cursor, keys, values, nil)
		if isNoBatch(err) {
			return t.eachSlowly(f)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("read map %s: %w", t.name, err)
		}
		for i := range n {
			t.give(f, keys[i], values[i])
		}
		if err != nil {
			return nil
		}
	}
}

func (t table[K, V]) give(f func(K, V), k K, v V) {
	var zero V
	if !t.array || v != zero {
		f(k, v)
	}
}

// eachSlowly is for kernels and map types without batches.
func (t table[K, V]) eachSlowly(f func(K, V)) error {
	var k K
	var v V
	it := t.m.Iterate()
	for it.Next(&k, &v) {
		t.give(f, k, v)
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("read map %s: %w", t.name, err)
	}
	return nil
}

// rows reads and writes the entries of a table.
type rows[K, V comparable] interface {
	limit() limit
	each(f func(K, V)) error
	put(keys []K, values []V) error
	remove(keys []K) error
}

// limit is the maximum number of entries of a table.
type limit struct {
	table string
	n     uint32
	array bool // the map is an array: keys are less than n
}

// difference has the entries to write and to delete, so that a map is as wanted.
type difference[K, V comparable] struct {
	rows   rows[K, V]
	limit  limit
	keys   []K
	values []V
	stale  []K
	have   int // entries now
	fresh  int // of keys, those that are not there yet
}

func (t table[K, V]) limit() limit { return limit{t.name, t.m.MaxEntries(), t.array} }

// read returns the entries of a table. It stores an error in err; if there is one already, it returns nil.
func read[K, V comparable](err *error, t rows[K, V]) map[K]V {
	if *err != nil {
		return nil
	}
	all := map[K]V{}
	*err = t.each(func(k K, v V) { all[k] = v })
	return all
}

// comparison compares the tables of a plan.
type comparison struct {
	known bool // the present entries are known; else they are read from the maps
	err   error
}

// compare compares a table with want. If c.known, have has the present entries. compare stores an error in c; if there is
// one already, it does nothing.
func compare[K, V comparable](c *comparison, t rows[K, V], have, want map[K]V) *difference[K, V] {
	d := &difference[K, V]{rows: t, limit: t.limit()}
	if n := needed(d.limit.array, want); c.err == nil && n > int(d.limit.n) {
		c.err = LimitError(d.limit.table, n, d.limit.n)
	}
	if c.err != nil {
		return d
	}
	each := t.each // a copy of a large map would need much memory
	if c.known {
		each = func(f func(K, V)) error {
			for k, v := range have {
				f(k, v)
			}
			return nil
		}
	}
	c.err = each(func(k K, v V) {
		d.have++
		if w, wanted := want[k]; !wanted {
			d.stale = append(d.stale, k)
		} else if w != v {
			d.keys, d.values = append(d.keys, k), append(d.values, w)
		}
	})
	if d.fresh = len(want) - (d.have - len(d.stale)); d.fresh == 0 {
		return d
	}
	if !c.known {
		have = read(&c.err, t)
	}
	for k, v := range want {
		if _, has := have[k]; !has {
			d.keys, d.values = append(d.keys, k), append(d.values, v)
		}
	}
	return d
}

// needed returns the number of entries that a map must have room for. The keys of an array are its indexes.
func needed[K, V comparable](array bool, want map[K]V) int {
	if !array {
		return len(want)
	}
	n := 0
	for k := range want {
		n = max(n, int(any(k).(uint32))+1)
	}
	return n
}

// split moves from d into a new difference the values for which is returns true, and all
// keys to delete.
func (d *difference[K, V]) split(is func(V) bool) *difference[K, V] {
	of := &difference[K, V]{rows: d.rows, limit: d.limit, stale: d.stale, have: d.have, fresh: d.fresh}
	d.stale = nil
	n := 0
	for i, v := range d.values {
		if is(v) {
			of.keys, of.values = append(of.keys, d.keys[i]), append(of.values, v)
		} else {
			d.keys[n], d.values[n] = d.keys[i], v
			n++
		}
	}
	d.keys, d.values = d.keys[:n], d.values[:n]
	return of
}

// update writes new and changed entries. If a full map has no room for old and new entries
// together, it deletes the old ones first.
func (d *difference[K, V]) update() (int, error) {
	if !d.limit.array && d.have+d.fresh > int(d.limit.n) {
		if _, err := d.prune(); err != nil {
			return 0, err
		}
	}
	return len(d.keys), d.rows.put(d.keys, d.values)
}

func (t table[K, V]) put(keys []K, values []V) error {
	for len(keys) > 0 {
		n := min(batch, len(keys))
		if n > 1 {
			_, err := t.m.BatchUpdate(keys[:n], values[:n], nil)
			if err == nil {
				keys, values = keys[n:], values[n:]
				continue
			}
			if !isNoBatch(err) {
				return fmt.Errorf("write %d entries of map %s: %w", n, t.name, err)
			}
		}
		for i := range n {
			if err := t.m.Put(&keys[i], &values[i]); err != nil {
				return fmt.Errorf("write map %s: %w", t.name, err)
			}
		}
		keys, values = keys[n:], values[n:]
	}
	return nil
}

func (d *difference[K, V]) note(all map[Entry]bool) {
	for _, k := range slices.Concat(d.keys, d.stale) {
		all[Entry{d.limit.table, k}] = true
	}
}

// prune deletes the entries that are not wanted. A second call deletes nothing.
func (d *difference[K, V]) prune() (int, error) {
	n := len(d.stale)
	stale := d.stale
	d.stale = nil
	return n, d.rows.remove(stale)
}

func (t table[K, V]) remove(keys []K) error {
	if t.array {
		return t.put(keys, make([]V, len(keys)))
	}
	for len(keys) > 0 {
		n := min(batch, len(keys))
		if n > 1 {
			if _, err := t.m.BatchDelete(keys[:n], nil); err == nil {
				keys = keys[n:]
				continue
			}
		}
		for i := range n {
			if err := t.m.Delete(&keys[i]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return fmt.Errorf("delete from map %s: %w", t.name, err)
			}
		}
		keys = keys[n:]
	}
	return nil
}

// moreRulesTable holds the rules of policies after their first rules.
type moreRulesTable struct {
	table[layout.RulesKey, layout.RuleChunk]
}

// remove waits for the programs that still evaluate the replaced policies.
func (t moreRulesTable) remove(keys []layout.RulesKey) error {
	if len(keys) == 0 {
		return nil
	}
	awaitPrograms()
	return t.table.remove(keys)
}
