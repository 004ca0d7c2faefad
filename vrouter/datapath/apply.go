package datapath

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"windtunnel/vrouter/fib"
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
// returns a *LimitError and writes nothing.
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
	composites := nexthops.split(func(n vrouterNexthop) bool { return fib.NexthopType(n.Type) == fib.Composite })
	vrfs, err := t.vrfs.diff(h.vrfs, v.vrfs)
	if err != nil {
		return nil, err
	}
	steps := []step{&renewal{d, fresh, vrfs.keys, nexthops.keys, nexthops.values}, nexthops}
	for _, compare := range []func() (step, error){
		func() (step, error) { return t.members.diff(h.members, v.members) },
		func() (step, error) { return composites, nil },
		func() (step, error) { return vrfs, nil },
		func() (step, error) { return t.moreRules.diff(h.moreRules, v.moreRules) },
		func() (step, error) { return t.policies.diff(h.policies, v.policies) },
		func() (step, error) { return t.policyGen.diff(h.policyGen, v.policyGen) },
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
func (d *Datapath) haveCounters(vifs map[uint32]vrouterVif) error {
	for _, v := range vifs {
		if n := d.maps.VifStats.MaxEntries(); v.Id >= n {
			return &LimitError{Table: "vif_stats", Want: int(v.Id), Limit: n - 1}
		}
	}
	return nil
}

// tables are the maps that Apply and Dump handle.
type tables struct {
	settings  table[uint32, vrouterNodeSettings]
	nexthops  nexthopTable
	members   table[vrouterMemberKey, vrouterMember]
	vrfs      table[uint32, vrouterVrf]
	moreRules moreRulesTable
	policies  table[uint32, vrouterPolicy]
	policyGen table[uint32, uint32] // generations, by vif id
	vifs      table[uint32, vrouterVif]
	hosts4    table[vrouterHost4Key, vrouterRoute]
	hosts6    table[vrouterHost6Key, vrouterRoute]
	lpm4      table[vrouterLpm4Key, vrouterRoute]
	lpm6      table[vrouterLpm6Key, vrouterRoute]
	bridge    table[vrouterBridgeKey, vrouterBridgeEntry]
	remotes   table[vrouterAddress, vrouterRemote]
	senders   table[vrouterSenderKey, vrouterSender]
	ilm       table[uint32, vrouterTarget]
	vnis      table[uint32, vrouterTarget]
}

func (d *Datapath) tables() tables {
	m := &d.maps
	return tables{
		settings:  table[uint32, vrouterNodeSettings]{"settings", m.Settings, true},
		nexthops:  nexthopTable{table[uint32, vrouterNexthop]{"nexthops", m.Nexthops, true}, table[uint32, uint32]{"nexthop_entries", m.NexthopEntries, true}, &d.grace},
		members:   table[vrouterMemberKey, vrouterMember]{"members", m.Members, false},
		vrfs:      table[uint32, vrouterVrf]{"vrfs", m.Vrfs, true},
		moreRules: moreRulesTable{table[vrouterRulesKey, vrouterRuleChunk]{"more_rules", m.MoreRules, false}},
		policies:  table[uint32, vrouterPolicy]{"policies", m.Policies, false},
		policyGen: table[uint32, uint32]{"policy_generations", m.PolicyGenerations, true},
		vifs:      table[uint32, vrouterVif]{"vifs", m.Vifs, false},
		hosts4:    table[vrouterHost4Key, vrouterRoute]{"hosts4", m.Hosts4, false},
		hosts6:    table[vrouterHost6Key, vrouterRoute]{"hosts6", m.Hosts6, false},
		lpm4:      table[vrouterLpm4Key, vrouterRoute]{"lpm4", m.Lpm4, false},
		lpm6:      table[vrouterLpm6Key, vrouterRoute]{"lpm6", m.Lpm6, false},
		bridge:    table[vrouterBridgeKey, vrouterBridgeEntry]{"bridge", m.Bridge, false},
		remotes:   table[vrouterAddress, vrouterRemote]{"remotes", m.Remotes, false},
		senders:   table[vrouterSenderKey, vrouterSender]{"senders", m.Senders, false},
		ilm:       table[uint32, vrouterTarget]{"ilm", m.Ilm, true},
		vnis:      table[uint32, vrouterTarget]{"vnis", m.Vnis, false},
	}
}

// values are a node's tables as the maps hold them.
type values struct {
	settings  map[uint32]vrouterNodeSettings
	nexthops  map[uint32]vrouterNexthop
	members   map[vrouterMemberKey]vrouterMember
	vrfs      map[uint32]vrouterVrf
	moreRules map[vrouterRulesKey]vrouterRuleChunk
	policies  map[uint32]vrouterPolicy
	policyGen map[uint32]uint32
	vifs      map[uint32]vrouterVif
	hosts4    map[vrouterHost4Key]vrouterRoute
	hosts6    map[vrouterHost6Key]vrouterRoute
	lpm4      map[vrouterLpm4Key]vrouterRoute
	lpm6      map[vrouterLpm6Key]vrouterRoute
	bridge    map[vrouterBridgeKey]vrouterBridgeEntry
	remotes   map[vrouterAddress]vrouterRemote
	senders   map[vrouterSenderKey]vrouterSender
	ilm       map[uint32]vrouterTarget
	vnis      map[uint32]vrouterTarget
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
		settings: map[uint32]vrouterNodeSettings{}, nexthops: map[uint32]vrouterNexthop{},
		members: map[vrouterMemberKey]vrouterMember{}, vrfs: map[uint32]vrouterVrf{},
		moreRules: map[vrouterRulesKey]vrouterRuleChunk{}, policies: map[uint32]vrouterPolicy{}, policyGen: map[uint32]uint32{}, vifs: map[uint32]vrouterVif{},
		bridge: make(map[vrouterBridgeKey]vrouterBridgeEntry, len(f.Bridge)), remotes: map[vrouterAddress]vrouterRemote{}, senders: map[vrouterSenderKey]vrouterSender{},
		ilm: map[uint32]vrouterTarget{}, vnis: map[uint32]vrouterTarget{},
	}
	if v.settings[0], err = encodeSettings(f.Settings); err != nil {
		return v, err
	}
	for id, n := range f.Nexthops {
		if v.nexthops[id], err = encodeNexthop(id, n); err != nil {
			return v, err
		}
		for i, m := range n.Members {
			v.members[vrouterMemberKey{Nexthop: id, Index: uint32(i)}] = vrouterMember{Nexthop: m.Nexthop, Label: m.Label}
		}
	}
	for id, n := range f.VRFs {
		v.vrfs[id] = encodeVRF(n)
	}
	for id, p := range f.Policies {
		var more map[vrouterRulesKey]vrouterRuleChunk
		if v.policies[id], more, err = encodePolicy(id, p); err != nil {
			return v, err
		}
		v.policyGen[id] = v.policies[id].Generation
		maps.Copy(v.moreRules, more)
	}
	if err := v.encodeVifs(f.Vifs); err != nil {
		return v, err
	}
	if err := v.routes(f.Routes); err != nil {
		return v, err
	}
	for k, e := range f.Bridge {
		v.bridge[vrouterBridgeKey{Vrf: k.VRF, Mac: k.MAC}] = vrouterBridgeEntry{Nexthop: e.Nexthop, Label: e.Label}
	}
	for a, r := range f.Remotes {
		if v.remotes[addressOf(a)], err = encodeRemote(a, r); err != nil {
			return v, err
		}
	}
	for k := range f.Senders {
		v.senders[encodeSender(k)] = vrouterSender{Known: 1}
	}
	for label, t := range f.ILM {
		v.ilm[label] = encodeTarget(t)
	}
	for vni, t := range f.VNIs {
		v.vnis[vni] = encodeTarget(t)
	}
	return v, nil
}

// encodeVifs checks that each vif has a different id, because counters, policies and flows
// use it. It marks the nexthops of vifs with a policy.
func (v *values) encodeVifs(all map[uint32]fib.Vif) (err error) {
	device := make(map[uint32]uint32, len(all)) // by vif id
	for ifindex, vif := range all {
		if vif.ID == 0 {
			return fmt.Errorf("vif at device %d: number 0 is the fabric's", ifindex)
		}
		if other, taken := device[vif.ID]; taken {
			return fmt.Errorf("vif %d is at two devices, %d and %d", vif.ID, min(other, ifindex), max(other, ifindex))
		}
		device[vif.ID] = ifindex
		if v.vifs[ifindex], err = encodeVif(vif); err != nil {
			return err
		}
	}
	for id, n := range v.nexthops {
		if fib.NexthopType(n.Type) == fib.Encap && v.vifs[device[n.Vif]].Flags&vifPolicy != 0 {
			n.Flags |= nhPolicy
			v.nexthops[id] = n
		}
	}
	return nil
}

// routes parts whole addresses, which go to the exact tables, from prefixes.
func (v *values) routes(all map[fib.RouteKey]fib.Route) error {
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
	v.hosts4, v.hosts6 = make(map[vrouterHost4Key]vrouterRoute, n4), make(map[vrouterHost6Key]vrouterRoute, n6)
	v.lpm4, v.lpm6 = map[vrouterLpm4Key]vrouterRoute{}, map[vrouterLpm6Key]vrouterRoute{}
	for k, r := range all {
		a, bits := k.Prefix.Addr(), uint32(k.Prefix.Bits())
		route := encodeRoute(r)
		switch {
		case a.Is4() && bits == 32:
			v.hosts4[vrouterHost4Key{Vrf: k.VRF, Address: be32(a)}] = route
		case a.Is4():
			v.lpm4[vrouterLpm4Key{Prefixlen: 32 + bits, Vrf: netOrder32(k.VRF), Address: be32(a)}] = route
		case bits == 128:
			v.hosts6[vrouterHost6Key{Vrf: k.VRF, Address: addressOf(a)}] = route
		default:
			v.lpm6[vrouterLpm6Key{Prefixlen: 32 + bits, Vrf: netOrder32(k.VRF), Address: addressOf(a)}] = route
		}
	}
	return nil
}

// Dump returns the contents of the maps, without names. It is not a snapshot: entries that
// change meanwhile can be old or new.
func (d *Datapath) Dump() (fib.Tables, error) {
	f := fib.Tables{
		Vifs: map[uint32]fib.Vif{}, VRFs: map[uint32]fib.VRF{}, Nexthops: map[uint32]fib.Nexthop{},
		Routes: map[fib.RouteKey]fib.Route{}, Bridge: map[fib.BridgeKey]fib.BridgeEntry{},
		ILM: map[uint32]fib.Target{}, VNIs: map[uint32]fib.Target{}, Remotes: map[netip.Addr]fib.Remote{}, Senders: map[fib.SenderKey]bool{},
		Policies: map[uint32]fib.Policy{},
	}
	t := d.tables()
	members, more := map[vrouterMemberKey]vrouterMember{}, map[vrouterRulesKey]vrouterRuleChunk{}
	for _, read := range []func() error{
		func() error {
			return t.settings.each(func(_ uint32, v vrouterNodeSettings) { f.Settings = decodeSettings(v) })
		},
		func() error { return t.members.each(func(k vrouterMemberKey, v vrouterMember) { members[k] = v }) },
		func() error {
			return t.nexthops.each(func(id uint32, v vrouterNexthop) { f.Nexthops[id] = withMembers(id, v, members) })
		},
		func() error { return t.vrfs.each(func(id uint32, v vrouterVrf) { f.VRFs[id] = decodeVRF(v) }) },
		func() error { return t.moreRules.each(func(k vrouterRulesKey, v vrouterRuleChunk) { more[k] = v }) },
		func() error {
			return t.policies.each(func(id uint32, v vrouterPolicy) { f.Policies[id] = decodePolicy(id, &v, more) })
		},
		func() error { return t.vifs.each(func(i uint32, v vrouterVif) { f.Vifs[i] = decodeVif(v) }) },
		func() error { return t.dumpRoutes(f.Routes) },
		func() error {
			return t.bridge.each(func(k vrouterBridgeKey, v vrouterBridgeEntry) {
				f.Bridge[fib.BridgeKey{VRF: k.Vrf, MAC: k.Mac}] = fib.BridgeEntry{Nexthop: v.Nexthop, Label: v.Label}
			})
		},
		func() error {
			return t.remotes.each(func(a vrouterAddress, v vrouterRemote) { f.Remotes[addrOf(a)] = decodeRemote(v) })
		},
		func() error {
			return t.senders.each(func(k vrouterSenderKey, _ vrouterSender) { f.Senders[decodeSender(k)] = true })
		},
		func() error { return t.ilm.each(func(l uint32, v vrouterTarget) { f.ILM[l] = decodeTarget(v) }) },
		func() error { return t.vnis.each(func(l uint32, v vrouterTarget) { f.VNIs[l] = decodeTarget(v) }) },
	} {
		if err := read(); err != nil {
			return f, err
		}
	}
	return f, nil
}

func withMembers(id uint32, v vrouterNexthop, members map[vrouterMemberKey]vrouterMember) fib.Nexthop {
	f := decodeNexthop(v)
	for i := range uint32(v.Members) {
		m := members[vrouterMemberKey{Nexthop: id, Index: i}]
		f.Members = append(f.Members, fib.Member{Nexthop: m.Nexthop, Label: m.Label})
	}
	return f
}

func (t tables) dumpRoutes(into map[fib.RouteKey]fib.Route) error {
	put := func(vrf uint32, a netip.Addr, bits int, v vrouterRoute) {
		into[fib.RouteKey{VRF: vrf, Prefix: netip.PrefixFrom(a, bits)}] = decodeRoute(v)
	}
	for _, read := range []func() error{
		func() error {
			return t.hosts4.each(func(k vrouterHost4Key, v vrouterRoute) { put(k.Vrf, addr4(k.Address), 32, v) })
		},
		func() error {
			return t.hosts6.each(func(k vrouterHost6Key, v vrouterRoute) { put(k.Vrf, netip.AddrFrom16(k.Address.Bytes), 128, v) })
		},
		func() error {
			return t.lpm4.each(func(k vrouterLpm4Key, v vrouterRoute) {
				put(netOrder32(k.Vrf), addr4(k.Address), int(k.Prefixlen)-32, v)
			})
		},
		func() error {
			return t.lpm6.each(func(k vrouterLpm6Key, v vrouterRoute) {
				put(netOrder32(k.Vrf), netip.AddrFrom16(k.Address.Bytes), int(k.Prefixlen)-32, v)
			})
		},
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}
