package datapath

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

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
// of Apply or Update must have written the older tables without an error. The routes, bridge
// entries and senders that are equal in both tables can be left out. All other tables must be
// complete.
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

// write makes the maps equal to want. have has the present entries; nil: write reads them.
func (d *Datapath) write(want fib.Tables, have *fib.Tables) (Changes, error) {
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
	if err := d.haveCounters(v.vifs); err != nil {
		return nil, err
	}
	fresh, err := t.freshVifs(h.vifs, v.vifs)
	if err != nil {
		return nil, err
	}
	nexthops, err := t.nexthops.diff(h.nexthops, v.nexthops)
	if err != nil {
		return nil, err
	}
	composites := nexthops.split(func(n layout.Nexthop) bool { return fib.NexthopType(n.Type) == fib.Composite })
	vrfs, err := t.vrfs.diff(h.vrfs, v.vrfs)
	if err != nil {
		return nil, err
	}
	steps := []step{&renewal{d, fresh, vrfs.keys, nexthops.keys, nexthops.values}, nexthops}
	for _, compare := range []func() (step, error){
		func() (step, error) { return t.members.diff(h.members, v.members) },
		func() (step, error) { return composites, nil },
		func() (step, error) { return vrfs, nil },
		func() (step, error) { return t.diffSets(h, v) },
		func() (step, error) { return t.moreRules.diff(h.moreRules, v.moreRules) },
		func() (step, error) { return t.policies.diff(h.policies, v.policies) },
		func() (step, error) { return t.policyGen.diff(h.policyGen, v.policyGen) },
		func() (step, error) { return t.nats.diff(h.nats, v.nats) },
		func() (step, error) { return t.floatings.diff(h.floatings, v.floatings) },
		func() (step, error) { return t.vifs.diff(h.vifs, v.vifs) },
		func() (step, error) { return t.senders.diff(h.senders, v.senders) },
		func() (step, error) { return t.remotes.diff(h.remotes, v.remotes) },
		func() (step, error) { return t.settings.diff(h.settings, v.settings) },
		func() (step, error) { return t.hosts4.diff(h.hosts4, v.hosts4) },
		func() (step, error) { return t.hosts6.diff(h.hosts6, v.hosts6) },
		func() (step, error) { return t.lpm4.diff(h.lpm4, v.lpm4) },
		func() (step, error) { return t.lpm6.diff(h.lpm6, v.lpm6) },
		func() (step, error) { return t.bridge.diff(h.bridge, v.bridge) },
		func() (step, error) { return t.ilm.diff(h.ilm, v.ilm) },
		func() (step, error) { return t.vnis.diff(h.vnis, v.vnis) },
	} {
		s, err := compare()
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
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
	settings   map[uint32]layout.NodeSettings
	nexthops   map[uint32]layout.Nexthop
	members    map[layout.MemberKey]layout.Member
	vrfs       map[uint32]layout.VRF
	moreRules  map[layout.RulesKey]layout.RuleChunk
	policies   map[uint32]layout.Policy
	policyGen  map[uint32]uint32
	vifs       map[uint32]layout.Vif
	hosts4     map[layout.Host4Key]layout.Route
	hosts6     map[layout.Host6Key]layout.Route
	lpm4       map[layout.Lpm4Key]layout.Route
	lpm6       map[layout.Lpm6Key]layout.Route
	bridge     map[layout.BridgeKey]layout.BridgeEntry
	remotes    map[layout.Address]layout.Remote
	senders    map[layout.SenderKey]layout.Sender
	ilm        map[uint32]layout.Target
	vnis       map[uint32]layout.Target
	identities map[layout.IdentityKey]layout.Identity
	nats       map[uint32]layout.NAT
	floatings  map[layout.FloatingKey]layout.Floating
	allows     map[layout.AllowKey]layout.Allow
}

// encode returns tables with the cookies and the checksums of this node.
func (d *Datapath) encode(f fib.Tables) (values, error) {
	v, err := encode(f)
	v.addCookies(d.nonce)
	v.addChecksums(d.options.Checksums)
	return v, err
}

func encode(f fib.Tables) (v values, err error) {
	v = values{
		settings: map[uint32]layout.NodeSettings{}, nexthops: map[uint32]layout.Nexthop{},
		members: map[layout.MemberKey]layout.Member{}, vrfs: copyOf(f.VRFs),
		moreRules: map[layout.RulesKey]layout.RuleChunk{}, policies: map[uint32]layout.Policy{}, policyGen: map[uint32]uint32{}, vifs: copyOf(f.Vifs),
		bridge: copyOf(f.Bridge), remotes: copyOf(f.Remotes), senders: copyOf(f.Senders),
		ilm: copyOf(f.ILM), vnis: copyOf(f.VNIs), nats: copyOf(f.NATs), floatings: copyOf(f.Floatings),
	}
	v.settings[0] = f.Settings
	v.sets(f.Sets)
	for id, n := range f.Nexthops {
		if v.nexthops[id], err = encodeNexthop(id, n); err != nil {
			return v, err
		}
		for i, m := range n.Members {
			v.members[layout.MemberKey{Nexthop: id, Index: uint32(i)}] = m
		}
	}
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
	if err := v.routes(f.Routes); err != nil {
		return v, err
	}
	return v, nil
}

// copyOf returns a copy of a map, from which diff removes entries. It is not nil.
func copyOf[K, V comparable](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	maps.Copy(c, m)
	return c
}

// checkVifs checks that each vif has a different id, because counters, policies and flows
// use it. It marks the nexthops of vifs with a policy or with services.
func (v *values) checkVifs() error {
	device := make(map[uint32]uint32, len(v.vifs)) // by vif id
	for ifindex, vif := range v.vifs {
		if vif.ID == 0 {
			return fmt.Errorf("vif at device %d: number 0 is the fabric's", ifindex)
		}
		if other, taken := device[vif.ID]; taken {
			return fmt.Errorf("vif %d is at two devices, %d and %d", vif.ID, min(other, ifindex), max(other, ifindex))
		}
		device[vif.ID] = ifindex
	}
	for id, n := range v.nexthops {
		if fib.NexthopType(n.Type) == fib.Encap {
			flags := v.vifs[device[n.Vif]].Flags
			n.Flags |= layout.If[uint8](flags&layout.VifPolicy != 0, layout.NexthopPolicy) | layout.If[uint8](flags&layout.VifServices != 0, layout.NexthopServices)
			v.nexthops[id] = n
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
	f := fib.Tables{
		Vifs: map[uint32]layout.Vif{}, VRFs: map[uint32]layout.VRF{}, Nexthops: map[uint32]fib.Nexthop{},
		Routes: map[fib.RouteKey]layout.Route{}, Bridge: map[layout.BridgeKey]layout.BridgeEntry{},
		ILM: map[uint32]layout.Target{}, VNIs: map[uint32]layout.Target{}, Remotes: map[layout.Address]layout.Remote{}, Senders: map[layout.SenderKey]layout.Sender{},
		NATs: map[uint32]layout.NAT{}, Floatings: map[layout.FloatingKey]layout.Floating{},
		Policies: map[uint32]fib.Policy{}, Sets: fib.Sets{Identities: map[fib.RouteKey]fib.Identity{}, Allows: map[fib.Allow]bool{}},
	}
	t := d.tables()
	members, more := map[layout.MemberKey]layout.Member{}, map[layout.RulesKey]layout.RuleChunk{}
	for _, read := range []func() error{
		func() error {
			return t.settings.each(func(_ uint32, v layout.NodeSettings) { f.Settings = v })
		},
		func() error { return t.members.each(func(k layout.MemberKey, v layout.Member) { members[k] = v }) },
		func() error {
			return t.nexthops.each(func(id uint32, v layout.Nexthop) { f.Nexthops[id] = withMembers(id, v, members) })
		},
		func() error { return t.vrfs.each(func(id uint32, v layout.VRF) { f.VRFs[id] = v }) },
		func() error { return t.moreRules.each(func(k layout.RulesKey, v layout.RuleChunk) { more[k] = v }) },
		func() error {
			return t.policies.each(func(id uint32, v layout.Policy) { f.Policies[id] = decodePolicy(id, &v, more) })
		},
		func() error { return t.vifs.each(func(i uint32, v layout.Vif) { f.Vifs[i] = v }) },
		func() error { return t.dumpRoutes(f.Routes) },
		func() error { return t.dumpSets(&f.Sets) },
		func() error {
			return t.bridge.each(func(k layout.BridgeKey, v layout.BridgeEntry) { f.Bridge[k] = v })
		},
		func() error {
			return t.remotes.each(func(a layout.Address, v layout.Remote) {
				v.Cookie = 0 // as in the tables that Apply got
				f.Remotes[a] = v
			})
		},
		func() error {
			return t.senders.each(func(k layout.SenderKey, v layout.Sender) { f.Senders[k] = v })
		},
		func() error { return t.nats.each(func(id uint32, v layout.NAT) { f.NATs[id] = v }) },
		func() error {
			return t.floatings.each(func(k layout.FloatingKey, v layout.Floating) { f.Floatings[k] = v })
		},
		func() error { return t.ilm.each(func(l uint32, v layout.Target) { f.ILM[l] = v }) },
		func() error { return t.vnis.each(func(l uint32, v layout.Target) { f.VNIs[l] = v }) },
	} {
		if err := read(); err != nil {
			return f, err
		}
	}
	return f, nil
}

func withMembers(id uint32, v layout.Nexthop, members map[layout.MemberKey]layout.Member) fib.Nexthop {
	f := decodeNexthop(v)
	for i := range uint32(v.Members) {
		m := members[layout.MemberKey{Nexthop: id, Index: i}]
		f.Members = append(f.Members, m)
	}
	return f
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
