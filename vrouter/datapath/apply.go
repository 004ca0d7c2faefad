package datapath

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

// Changes counts the map entries that an Apply wrote and deleted.
type Changes struct{ Updated, Deleted int }

// step is one table's part of an Apply.
type step interface {
	update() (int, error)
	prune() (int, error)
	note(all map[Entry]bool) // adds the entries to write and to delete
}

// Entry is an entry of a map.
type Entry struct {
	Table string
	Key   any
}

// Apply makes the maps equal to the tables. It reads the maps, and writes only entries
// that differ. It writes an entry before the entries that refer to it, and deletes in the
// opposite order, so that every packet finds complete routes. If a map is too small, it
// returns a *fib.LimitError and writes nothing.
func (d *Datapath) Apply(want fib.Tables) (Changes, error) { return d.write(want, nil) }

// Update writes the differences between two tables, and does not read the maps. The last call
// of Apply or Update must have written the older tables without an error. Entries that are equal in
// both tables can be left out as in fib.Compiled.Since.
func (d *Datapath) Update(before, after fib.Tables) (Changes, error) { return d.write(after, &before) }

// Differs returns the entries that Apply would write or delete. It writes nothing, so it can run at
// the same time as other methods. Then it may return a difference that such a method has just removed.
func (d *Datapath) Differs(want fib.Tables) (map[Entry]bool, error) {
	all := map[Entry]bool{}
	steps, err := d.plan(want, nil)
	for _, s := range steps {
		s.note(all)
	}
	return all, err
}

// write changes the maps to want. have has the entries of the maps. If have is nil, write reads them, unless the maps are new.
func (d *Datapath) write(want fib.Tables, have *fib.Tables) (Changes, error) {
	if d.isNew && have == nil {
		have = &fib.Tables{} // new maps are empty, so they need not be read
	}
	d.isNew = false
	steps, err := d.plan(want, have)
	if err != nil {
		return Changes{}, err
	}
	var c Changes
	err = d.changeCached(func() error {
		for _, s := range steps {
			n, err := s.update()
			c.Updated += n
			if err != nil {
				return err
			}
		}
		for _, s := range slices.Backward(steps) {
			n, err := s.prune()
			c.Deleted += n
			if err != nil {
				return err
			}
		}
		return nil
	})
	return c, err
}

// plan compares every table, in the order of writing: a composite follows its
// members, which follow their nexthops; a vif follows its policy, and that its rules; that unknown
// sources are refused follows the sources that are known.
func (d *Datapath) plan(want fib.Tables, have *fib.Tables) ([]step, error) {
	v, err := d.encode(want)
	if err != nil {
		return nil, err
	}
	var h values
	if have != nil {
		if h, err = d.encode(*have); err != nil {
			return nil, err
		}
	}
	t := d.tables()
	if err := d.haveCounters(v.Vifs); err != nil {
		return nil, err
	}
	c := &comparison{known: have != nil}
	nexthops := compare(c, t.nexthops, h.Nexthops, v.Nexthops)
	composites := nexthops.split(func(n layout.Nexthop) bool { return n.Type == layout.Composite })
	vrfs := compare(c, t.vrfs, h.VRFs, v.VRFs)
	if !c.known {
		h.Vifs = read(&c.err, t.vifs)
	}
	return []step{
		&renewal{d, freshVifs(h.Vifs, v.Vifs), vrfs.keys, nexthops.keys, nexthops.values},
		nexthops,
		compare(c, t.members, h.Members, v.Members),
		composites,
		vrfs,
		t.compareSets(c, h, v),
		compare(c, t.moreRules, h.moreRules, v.moreRules),
		compare(c, t.policies, h.policies, v.policies),
		compare(c, t.policyGen, h.policyGen, v.policyGen),
		compare(c, t.nats, h.NATs, v.NATs),
		compare(c, t.floatings, h.Floatings, v.Floatings),
		compare(c, t.vifs, h.Vifs, v.Vifs),
		compare(c, t.senders, h.Senders, v.Senders),
		compare(c, t.remotes, h.Remotes, v.Remotes),
		compare(c, t.settings, h.settings, v.settings),
		compare(c, t.hosts4, h.hosts4, v.hosts4),
		compare(c, t.hosts6, h.hosts6, v.hosts6),
		compare(c, t.lpm4, h.lpm4, v.lpm4),
		compare(c, t.lpm6, h.lpm6, v.lpm6),
		compare(c, t.bridge, h.Bridge, v.Bridge),
		compare(c, t.ilm, h.ILM, v.ILM),
		compare(c, t.vnis, h.VNIs, v.VNIs),
	}, c.err
}

// haveCounters: a vif's number is its index in the counters.
func (d *Datapath) haveCounters(vifs map[uint32]layout.Vif) error {
	for _, v := range vifs {
		if n := d.maps.VifStats.MaxEntries(); v.ID >= n {
			return LimitError("vif_stats", int(v.ID), n-1)
		}
	}
	return nil
}

// tables are the maps that Apply and Dump handle.
type tables struct {
	settings   table[uint32, layout.NodeSettings]
	nexthops   nexthopTable
	members    table[layout.MemberKey, layout.Member]
	vrfs       table[uint32, layout.VRF]
	moreRules  moreRulesTable
	policies   table[uint32, layout.Policy]
	policyGen  table[uint32, uint32] // generations, by vif id
	vifs       table[uint32, layout.Vif]
	hosts4     table[layout.Host4Key, layout.Route]
	hosts6     table[layout.Host6Key, layout.Route]
	lpm4       table[layout.Lpm4Key, layout.Route]
	lpm6       table[layout.Lpm6Key, layout.Route]
	bridge     table[layout.BridgeKey, layout.BridgeEntry]
	remotes    table[layout.Address, layout.Remote]
	senders    table[layout.SenderKey, layout.Sender]
	ilm        table[uint32, layout.Target]
	vnis       table[uint32, layout.Target]
	identities table[layout.IdentityKey, layout.Identity]
	nats       table[uint32, layout.NAT] // by vif id
	floatings  table[layout.FloatingKey, layout.Floating]
	allows     table[layout.AllowKey, layout.Allow]
}

func (d *Datapath) tables() tables {
	m := &d.maps
	return tables{
		settings:   table[uint32, layout.NodeSettings]{"settings", m.Settings, true},
		nexthops:   nexthopTable{table[uint32, layout.Nexthop]{"nexthops", m.Nexthops, true}, table[uint32, uint32]{"nexthop_entries", m.NexthopEntries, true}, &d.grace},
		members:    table[layout.MemberKey, layout.Member]{"members", m.Members, false},
		vrfs:       table[uint32, layout.VRF]{"vrfs", m.Vrfs, true},
		moreRules:  moreRulesTable{table[layout.RulesKey, layout.RuleChunk]{"more_rules", m.MoreRules, false}},
		policies:   table[uint32, layout.Policy]{"policies", m.Policies, false},
		policyGen:  table[uint32, uint32]{"policy_generations", m.PolicyGenerations, true},
		vifs:       table[uint32, layout.Vif]{"vifs", m.Vifs, false},
		hosts4:     table[layout.Host4Key, layout.Route]{"hosts4", m.Hosts4, false},
		hosts6:     table[layout.Host6Key, layout.Route]{"hosts6", m.Hosts6, false},
		lpm4:       table[layout.Lpm4Key, layout.Route]{"lpm4", m.Lpm4, false},
		lpm6:       table[layout.Lpm6Key, layout.Route]{"lpm6", m.Lpm6, false},
		bridge:     table[layout.BridgeKey, layout.BridgeEntry]{"bridge", m.Bridge, false},
		remotes:    table[layout.Address, layout.Remote]{"remotes", m.Remotes, false},
		senders:    table[layout.SenderKey, layout.Sender]{"senders", m.Senders, false},
		ilm:        table[uint32, layout.Target]{"ilm", m.Ilm, true},
		vnis:       table[uint32, layout.Target]{"vnis", m.Vnis, false},
		identities: table[layout.IdentityKey, layout.Identity]{"identities", m.Identities, false},
		nats:       table[uint32, layout.NAT]{"nats", m.Nats, false},
		floatings:  table[layout.FloatingKey, layout.Floating]{"floatings", m.Floatings, false},
		allows:     table[layout.AllowKey, layout.Allow]{"allows", m.Allows, false},
	}
}

// values are a node's tables as the maps hold them.
type values struct {
	fib.Tables
	settings   map[uint32]layout.NodeSettings
	moreRules  map[layout.RulesKey]layout.RuleChunk
	policies   map[uint32]layout.Policy
	policyGen  map[uint32]uint32
	hosts4     map[layout.Host4Key]layout.Route
	hosts6     map[layout.Host6Key]layout.Route
	lpm4       map[layout.Lpm4Key]layout.Route
	lpm6       map[layout.Lpm6Key]layout.Route
	identities map[layout.IdentityKey]layout.Identity
	allows     map[layout.AllowKey]layout.Allow
}

// encode returns tables with the cookies and the checksums of this node.
func (d *Datapath) encode(f fib.Tables) (values, error) {
	v, err := encode(f)
	v.addCookies(d.nonce)
	v.addChecksums(d.options.Checksums)
	return v, err
}

// encode does not change f.
func encode(f fib.Tables) (v values, err error) {
	v = values{
		Tables: f, settings: map[uint32]layout.NodeSettings{0: f.Settings},
		moreRules: map[layout.RulesKey]layout.RuleChunk{}, policies: map[uint32]layout.Policy{}, policyGen: map[uint32]uint32{},
	}
	v.Nexthops, v.Remotes = maps.Clone(f.Nexthops), maps.Clone(f.Remotes)
	v.sets(f.Sets)
	for id, p := range f.Policies {
		var more map[layout.RulesKey]layout.RuleChunk
		if v.policies[id], more, err = encodePolicy(id, p); err != nil {
			return v, err
		}
		v.policyGen[id] = v.policies[id].Generation
		maps.Copy(v.moreRules, more)
	}
	if err := v.checkVifs(); err != nil {
		return v, err
	}
	return v, v.routes(f.Routes)
}

// checkVifs checks that each vif has a different id, because counters, policies and flows
// use it. It marks the nexthops of vifs with a policy or with services.
func (v *values) checkVifs() error {
	device := make(map[uint32]uint32, len(v.Vifs)) // by vif id
	for ifindex, vif := range v.Vifs {
		if vif.ID == 0 {
			return fmt.Errorf("vif at device %d: number 0 is the fabric's", ifindex)
		}
		if other, taken := device[vif.ID]; taken {
			return fmt.Errorf("vif %d is at two devices, %d and %d", vif.ID, min(other, ifindex), max(other, ifindex))
		}
		device[vif.ID] = ifindex
	}
	for id, n := range v.Nexthops {
		if n.Type == layout.Encap {
			flags := v.Vifs[device[n.Vif]].Flags
			n.Flags |= layout.If[uint8](flags&layout.VifPolicy != 0, layout.NexthopPolicy) | layout.If[uint8](flags&layout.VifServices != 0, layout.NexthopServices)
			v.Nexthops[id] = n
		}
	}
	return nil
}

// routes parts whole addresses, which go to the exact tables, from prefixes.
func (v *values) routes(all map[fib.RouteKey]layout.Route) error {
	var n4, n6 int
	for k := range all {
		switch {
		case k.Prefix != k.Prefix.Masked() || !k.Prefix.IsValid() || k.Prefix.Addr().Is4In6():
			return fmt.Errorf("route %s in VRF %d: not a prefix in its shortest form", k.Prefix, k.VRF)
		case !k.Prefix.IsSingleIP():
		case k.Prefix.Addr().Is4():
			n4++
		default:
			n6++
		}
	}
	v.hosts4, v.hosts6 = make(map[layout.Host4Key]layout.Route, n4), make(map[layout.Host6Key]layout.Route, n6)
	v.lpm4, v.lpm6 = map[layout.Lpm4Key]layout.Route{}, map[layout.Lpm6Key]layout.Route{}
	for k, r := range all {
		a, bits := k.Prefix.Addr(), uint32(k.Prefix.Bits())
		switch {
		case a.Is4() && bits == 32:
			v.hosts4[layout.Host4Key{VRF: k.VRF, Address: layout.Network4(a)}] = r
		case a.Is4():
			v.lpm4[layout.Lpm4Key{Prefixlen: 32 + bits, VRF: layout.Network32(k.VRF), Address: layout.Network4(a)}] = r
		case bits == 128:
			v.hosts6[layout.Host6Key{VRF: k.VRF, Address: layout.AddressOf(a)}] = r
		default:
			v.lpm6[layout.Lpm6Key{Prefixlen: 32 + bits, VRF: layout.Network32(k.VRF), Address: layout.AddressOf(a)}] = r
		}
	}
	return nil
}

// Dump returns the contents of the maps, without names. It is not a snapshot: entries that
// change meanwhile can be old or new.
func (d *Datapath) Dump() (fib.Tables, error) {
	t := d.tables()
	var err error
	f := fib.Tables{
		Settings: read(&err, t.settings)[0], Members: read(&err, t.members), Nexthops: read(&err, t.nexthops), VRFs: read(&err, t.vrfs), Vifs: read(&err, t.vifs),
		Routes: map[fib.RouteKey]layout.Route{}, Bridge: read(&err, t.bridge), Remotes: read(&err, t.remotes), Senders: read(&err, t.senders),
		NATs: read(&err, t.nats), Floatings: read(&err, t.floatings), ILM: read(&err, t.ilm), VNIs: read(&err, t.vnis),
		Policies: map[uint32]fib.Policy{}, Sets: fib.Sets{Identities: map[fib.RouteKey]layout.Identity{}, Allows: map[fib.Allow]bool{}},
	}
	more := read(&err, t.moreRules)
	for id, v := range read(&err, t.policies) {
		f.Policies[id] = decodePolicy(id, &v, more)
	}
	for a, v := range f.Remotes {
		v.Cookie = 0 // as in the tables that Apply got
		f.Remotes[a] = v
	}
	for id, n := range f.Nexthops {
		for i := range n.Path {
			n.Path[i].Cookie = 0
		}
		n.Flags &^= layout.NexthopPolicy | layout.NexthopServices | layout.NexthopChecksum
		f.Nexthops[id] = n
	}
	return f, errors.Join(err, t.dumpRoutes(f.Routes), t.dumpSets(&f.Sets))
}

func (t tables) dumpRoutes(into map[fib.RouteKey]layout.Route) error {
	put := func(vrf uint32, a netip.Addr, bits int, v layout.Route) {
		into[fib.RouteKey{VRF: vrf, Prefix: netip.PrefixFrom(a, bits)}] = v
	}
	for _, read := range []func() error{
		func() error {
			return t.hosts4.each(func(k layout.Host4Key, v layout.Route) { put(k.VRF, layout.Addr4(k.Address), 32, v) })
		},
		func() error {
			return t.hosts6.each(func(k layout.Host6Key, v layout.Route) { put(k.VRF, netip.AddrFrom16(k.Address.Bytes), 128, v) })
		},
		func() error {
			return t.lpm4.each(func(k layout.Lpm4Key, v layout.Route) {
				put(layout.Network32(k.VRF), layout.Addr4(k.Address), int(k.Prefixlen)-32, v)
			})
		},
		func() error {
			return t.lpm6.each(func(k layout.Lpm6Key, v layout.Route) {
				put(layout.Network32(k.VRF), netip.AddrFrom16(k.Address.Bytes), int(k.Prefixlen)-32, v)
			})
		},
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// isPreemptRT reports whether the kernel is a PREEMPT_RT kernel (kernel/ksysfs.c).
func isPreemptRT() bool {
	text, err := os.ReadFile("/sys/kernel/realtime")
	return err == nil && strings.TrimSpace(string(text)) == "1"
}

// changeCached runs a function that changes tables. Meanwhile the programs do not use their
// caches of these tables (bpf/cache.h), and afterwards no cached entry is valid. If change fails,
// or the agent dies meanwhile, the programs use no cache until the next call succeeds. A second
// process must not call it at the same time: the lock of agent/lock.go prevents this.
//
// On a PREEMPT_RT kernel the programs never use their caches, because there a program can
// interrupt another one on the same CPU.
func (d *Datapath) changeCached(change func() error) error {
	var generation uint64
	if err := d.maps.CacheGeneration.Lookup(uint32(0), &generation); err != nil {
		return fmt.Errorf("read the generation of the caches: %w", err)
	}
	odd := generation | 1
	if err := d.maps.CacheGeneration.Put(uint32(0), odd); err != nil {
		return fmt.Errorf("turn the caches off: %w", err)
	}
	if err := change(); err != nil {
		return err
	}
	if d.preemptRT {
		return nil // the generation stays odd
	}
	if runtime.GOARCH != "amd64" { // a program may have read a table before it reads the generation
		awaitPrograms()
	}
	if err := d.maps.CacheGeneration.Put(uint32(0), odd+1); err != nil {
		return fmt.Errorf("turn the caches on: %w", err)
	}
	return nil
}
