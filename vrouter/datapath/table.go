package datapath

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/layout"
)

// table is one map with the types of its keys and values.
type table[K, V comparable] struct {
	name  string
	m     *ebpf.Map
	array bool // entries are never absent: zero means nothing
}

// Limits of the entries, and of the bytes of values, that one system call reads. The kernel reads a hash map bucket by bucket,
// so a batch has room for at least leastBatch entries.
const (
	batch      = 4096
	batchBytes = 1 << 14
	leastBatch = 64
)

// eachEntry calls f with the key and the value of each entry of a map. In a per-CPU map, an entry has a value for each CPU. f
// must not keep the values. If end is not 0, the map must be an array, and eachEntry reads only the entries below end.
func eachEntry[K, V any](name string, m *ebpf.Map, end int, f func(K, []V)) error {
	if m.Flags()&unix.BPF_F_MMAPABLE != 0 {
		return eachMapped(name, m, cmp.Or(end, int(m.MaxEntries())), f)
	}
	per := 1 // values of an entry
	if m.Type() == ebpf.PerCPUArray || m.Type() == ebpf.PerCPUHash {
		cpus, err := ebpf.PossibleCPU()
		if err != nil {
			return fmt.Errorf("count the CPUs: %w", err)
		}
		per = cpus
	}
	n := max(leastBatch, min(batch, batchBytes/(max(int(m.ValueSize()), 1)*per)))
	n = min(n, int(m.MaxEntries()), cmp.Or(end, n))
	keys, values := make([]K, n), make([]V, n*per)
	var cursor ebpf.MapBatchCursor
	for got := 0; end == 0 || got < end; {
		if end != 0 {
			n = min(n, end-got)
		}
		more, err := m.BatchLookup(&cursor, keys[:n], values[:n*per], nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("read map %s: %w", name, err)
		}
		for i := range more {
			f(keys[i], values[i*per:(i+1)*per])
		}
		if err != nil {
			return nil // the last entry has been read
		}
		got += more
	}
	return nil
}

// eachMapped is eachEntry for an array with the flag BPF_F_MMAPABLE. It reads the array's memory, which is faster than system calls.
func eachMapped[K, V any](name string, m *ebpf.Map, end int, f func(K, []V)) error {
	memory, err := m.Memory()
	if err != nil {
		return fmt.Errorf("map the memory of map %s: %w", name, err)
	}
	size := (int(m.ValueSize()) + 7) &^ 7 // the kernel places the values at multiples of 8 bytes
	part := make([]uint64, min(end*size, batchBytes/size*size)/8)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(part))), 8*len(part))
	var i uint32
	key := any(&i).(*K)
	for ; int(i) < end; i++ {
		at := int(i) * size % len(bytes)
		if at == 0 {
			if _, err := memory.ReadAt(bytes, int64(i)*int64(size)); err != nil && err != io.EOF {
				return fmt.Errorf("read map %s: %w", name, err)
			}
		}
		f(*key, unsafe.Slice((*V)(unsafe.Pointer(&bytes[at])), 1))
	}
	return nil
}

// each calls f with every entry, except the entries of an array that are zero.
func (t table[K, V]) each(f func(K, V)) error { return t.eachBelow(0, f) }

// eachBelow is as each, but reads only the entries of an array below end; 0: all entries.
func (t table[K, V]) eachBelow(end int, f func(K, V)) error {
	var zero V
	return eachEntry(t.name, t.m, end, func(k K, v []V) {
		if !t.array || v[0] != zero {
			f(k, v[0])
		}
	})
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
		if _, err := t.m.BatchUpdate(keys[:n], values[:n], nil); err != nil {
			return fmt.Errorf("write %d entries of map %s: %w", n, t.name, err)
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
		if _, err := t.m.BatchDelete(keys[:n], nil); err == nil {
			keys = keys[n:]
			continue
		}
		for i := range n { // a missing key ends a batch
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
