package bgp

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/vrouter/model"
)

// table has the paths that neighbours announced. After a restart of the agent it begins with the paths of
// the previous run, marked as stale, so that the node keeps forwarding. Settle removes them when the
// neighbours have announced their paths again.
//
// A reflector can announce hundreds of thousands of paths that no network imports. So a path takes few bytes, without
// pointers: paths with equal attributes share them.
type table struct {
	paths     map[key]value
	neighbors []netip.Addr // by key.neighbor
	sets      []attributes // by value.set
	numbers   map[attributes]uint32
	uses      []int              // number of paths of each set
	free      []uint32           // sets without paths
	counts    map[source]int     // of paths
	hops      map[netip.Addr]int // of paths, by next hop

	targets map[model.RouteTarget]bool // of the last call of PathsTo
	last    []Path                     // its result, which callers keep
	changed map[key]bool               // paths with one of these targets that were put or withdrawn since
}

// source is a neighbour and the family of some of its paths.
type source struct {
	neighbor netip.Addr
	family   model.BGPFamily
}

// key is a Key in few bytes.
type key struct {
	rd           model.RouteDistinguisher
	address      [16]byte // of the prefix, or Origin
	mac          model.MAC
	bits         int16 // of the prefix; -1: there is none
	v4           bool
	family, kind uint8
	neighbor     uint16
}

// value has the fields of a path that are neither in its key nor in its attributes.
type value struct{ label, routed, set uint32 }

// attributes are the fields of a path that many paths have in common.
type attributes struct {
	source
	nextHop     netip.Addr
	routerMAC   model.MAC
	targets     string // 8 bytes each
	tunnels     string // 2 bytes each
	unusable    string
	communities string // lines
	localPref   uint32
	med         uint32
	asPath      int
	origin      uint8
	external    bool
	stale       bool
	kept        bool
	longLived   bool
}

var kinds = []Kind{VPN, Station, Multicast, Prefix}

// newTable returns a table with the paths of the agent's previous run, which become stale.
func newTable(stale []Path) *table {
	t := &table{paths: map[key]value{}, numbers: map[attributes]uint32{}, counts: map[source]int{}, hops: map[netip.Addr]int{}, changed: map[key]bool{}}
	for _, p := range stale {
		if p.Stale = true; p.Family != "" { // older agents stored such paths
			t.Put(p)
		}
	}
	return t
}

// keyOf returns the key of a path in the table. A new neighbour gets a number.
func (t *table) keyOf(k Key) key {
	neighbor := slices.Index(t.neighbors, k.Neighbor)
	if neighbor < 0 {
		neighbor, t.neighbors = len(t.neighbors), append(t.neighbors, k.Neighbor)
	}
	address := k.Prefix.Addr()
	if k.Kind == Multicast {
		address = k.Origin
	}
	small := key{rd: k.RD, mac: k.MAC, bits: -1, v4: address.Is4(), family: uint8(slices.Index(model.BGPFamilies, k.Family)), kind: uint8(slices.Index(kinds, k.Kind)), neighbor: uint16(neighbor)}
	if address.IsValid() {
		small.address = address.As16()
	}
	if k.Prefix.IsValid() {
		small.bits = int16(k.Prefix.Bits())
	}
	return small
}

func attributesOf(p *Path) attributes {
	a := attributes{source{p.Neighbor, p.Family}, p.NextHop, p.RouterMAC, "", "", p.Unusable, strings.Join(p.Communities, "\n"), p.LocalPref, p.MED, p.ASPath, p.Source, p.External, p.Stale, p.Kept, p.LongLivedStale}
	var b []byte
	for _, r := range p.Targets {
		b = append(b, r[:]...)
	}
	a.targets, b = string(b), nil
	for _, e := range p.Tunnels {
		b = binary.BigEndian.AppendUint16(b, uint16(e))
	}
	a.tunnels = string(b)
	return a
}

// path returns the path with a key. If the table has none, the result has only the fields of the key.
func (t *table) path(k key) Path {
	p := Path{Family: model.BGPFamilies[k.family], Kind: kinds[k.kind], RD: k.rd, MAC: k.mac, Neighbor: t.neighbors[k.neighbor]}
	address := netip.AddrFrom16(k.address)
	if k.v4 {
		address = address.Unmap()
	}
	if p.Kind == Multicast {
		p.Origin = address
	} else if k.bits >= 0 {
		p.Prefix = netip.PrefixFrom(address, int(k.bits))
	}
	v, has := t.paths[k]
	if !has {
		return p
	}
	a := &t.sets[v.set]
	p.NextHop, p.Label, p.RoutedLabel, p.RouterMAC, p.Unusable = a.nextHop, v.label, v.routed, a.routerMAC, a.unusable
	p.LocalPref, p.MED, p.ASPath, p.Source, p.External = a.localPref, a.med, a.asPath, a.origin, a.external
	p.Stale, p.Kept, p.LongLivedStale = a.stale, a.kept, a.longLived
	if a.communities != "" {
		p.Communities = strings.Split(a.communities, "\n")
	}
	for b := range slices.Chunk([]byte(a.targets), 8) {
		p.Targets = append(p.Targets, model.RouteTarget(b))
	}
	for b := range slices.Chunk([]byte(a.tunnels), 2) {
		p.Tunnels = append(p.Tunnels, bgp.TunnelType(binary.BigEndian.Uint16(b)))
	}
	return p
}

// Put adds or replaces a path. It returns how many paths of the same family the neighbour has then.
func (t *table) Put(p Path) int {
	k, a := t.keyOf(p.Key()), attributesOf(&p)
	t.withdraw(k)
	set, known := t.numbers[a]
	if !known {
		if n := len(t.free); n > 0 {
			set, t.free = t.free[n-1], t.free[:n-1]
			t.sets[set] = a
		} else {
			set, t.sets, t.uses = uint32(len(t.sets)), append(t.sets, a), append(t.uses, 0)
		}
		t.numbers[a] = set
	}
	t.paths[k] = value{p.Label, p.RoutedLabel, set}
	t.count(set, 1)
	t.note(k)
	return t.counts[a.source]
}

func (t *table) count(set uint32, n int) {
	a := &t.sets[set]
	t.uses[set] += n
	t.counts[a.source] += n
	if t.hops[a.nextHop] += n; t.hops[a.nextHop] == 0 {
		delete(t.hops, a.nextHop)
	}
	if t.uses[set] == 0 {
		delete(t.numbers, *a)
		t.free = append(t.free, set)
	}
}

// Withdraw removes a path. It reports whether the table had it.
func (t *table) Withdraw(k Key) bool { return t.withdraw(t.keyOf(k)) }

func (t *table) withdraw(k key) bool {
	v, has := t.paths[k]
	if has {
		t.note(k)
		delete(t.paths, k)
		t.count(v.set, -1)
	}
	return has
}

// note records a change of a path if PathsTo returns it.
func (t *table) note(k key) {
	if t.isWanted(k) {
		t.changed[k] = true
	}
}

// isWanted reports whether a path has one of the targets of the last call of PathsTo.
func (t *table) isWanted(k key) bool {
	v, has := t.paths[k]
	return has && t.sets[v.set].hasOneOf(t.targets)
}

// drop removes the paths with attributes for which gone returns true.
func (t *table) drop(gone func(*attributes) bool) {
	is, some := make([]bool, len(t.sets)), false
	for i := range t.sets {
		is[i] = t.uses[i] > 0 && gone(&t.sets[i])
		some = some || is[i]
	}
	if !some {
		return
	}
	for k, v := range t.paths {
		if is[v.set] {
			t.withdraw(k)
		}
	}
}

// Settle removes the stale paths of a neighbour in a family, after the neighbour has announced all its
// paths again. An invalid neighbour stands for all neighbours, and an empty family for all families.
func (t *table) Settle(neighbor netip.Addr, f model.BGPFamily) {
	t.drop(func(a *attributes) bool {
		return a.stale && (!neighbor.IsValid() || a.neighbor == neighbor) && (f == "" || a.family == f)
	})
}

// Keep removes each path whose neighbour or address family is not in the node's BGP configuration.
func (t *table) Keep(b *model.BGP) {
	t.drop(func(a *attributes) bool {
		return len(b.Families) > 0 && !slices.Contains(b.Families, a.family) || !slices.ContainsFunc(b.Neighbors, func(n model.Neighbor) bool { return n.Address == a.neighbor })
	})
}

// Count returns the number of paths of a neighbour, and how many of them are stale.
func (t *table) Count(neighbor netip.Addr) (all, stale int) {
	for i := range t.sets {
		if a := &t.sets[i]; a.neighbor == neighbor {
			all += t.uses[i]
			stale += toInt(a.stale || a.kept || a.longLived) * t.uses[i]
		}
	}
	return all, stale
}

func (a *attributes) hasOneOf(targets map[model.RouteTarget]bool) bool {
	for b := range slices.Chunk([]byte(a.targets), 8) {
		if targets[model.RouteTarget(b)] {
			return true
		}
	}
	return false
}

// Paths returns all paths, sorted. The result is never nil.
func (t *table) Paths() []Path { return t.sorted(maps.Keys(t.paths), len(t.paths)) }

// PathsTo returns the paths that have one of the targets, sorted, and the changes since the last call. If the targets are
// those of the last call, it looks only at the paths that have changed. Otherwise the changes are nil.
func (t *table) PathsTo(targets map[model.RouteTarget]bool) ([]Path, Changes) {
	changes := Changes{}
	if !maps.Equal(targets, t.targets) {
		t.targets, t.last, t.changed, changes = targets, nil, map[key]bool{}, nil
		has := make([]bool, len(t.sets))
		for i := range t.sets {
			has[i] = t.sets[i].hasOneOf(targets)
		}
		for k, v := range t.paths {
			if has[v.set] {
				t.changed[k] = true
			}
		}
	}
	changed := t.sorted(maps.Keys(t.changed), len(t.changed))
	for i := range changed {
		if changes != nil {
			changes.add(&changed[i])
		}
	}
	t.last = merge(t.last, changed, compare, func(p *Path) bool { return t.isWanted(t.keyOf(p.Key())) })
	t.changed = map[key]bool{}
	return t.last, changes
}

func (t *table) sorted(keys iter.Seq[key], n int) []Path {
	all := make([]Path, 0, n)
	for k := range keys {
		all = append(all, t.path(k))
	}
	slices.SortFunc(all, func(a, b Path) int { return compare(&a, &b) })
	return all
}

// merge returns a sorted list with each change in the place of the element that compares equal, or without this element
// if stays returns false for the change. The changes are sorted. The result is never nil.
func merge[E any](all, changes []E, compare func(a, b *E) int, stays func(*E) bool) []E {
	merged := make([]E, 0, len(all)+len(changes))
	for i := range changes {
		at, replaces := slices.BinarySearchFunc(all, &changes[i], func(e E, c *E) int { return compare(&e, c) })
		merged, all = append(merged, all[:at]...), all[at+toInt(replaces):]
		if stays(&changes[i]) {
			merged = append(merged, changes[i])
		}
	}
	return append(merged, all...)
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
