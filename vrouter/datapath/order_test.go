package datapath

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// dangling is what in the maps points at nothing: packets that came by at this
// moment would be lost.
func dangling(d *Datapath) (all []string, err error) {
	f, err := d.Dump()
	if err != nil {
		return nil, err
	}
	check := func(what any, nexthop uint32) {
		if _, ok := f.Nexthops[nexthop]; !ok && nexthop != 0 {
			all = append(all, fmt.Sprintf("%v: nexthop %d does not exist", what, nexthop))
		}
	}
	for k, r := range f.Routes {
		check(k, r.Nexthop)
	}
	for k, e := range f.Bridge {
		check(k, e.Nexthop)
	}
	for l, t := range f.ILM {
		check(fmt.Sprint("label ", l), t.Nexthop)
	}
	for v, t := range f.VNIs {
		check(fmt.Sprint("VNI ", v), t.Nexthop)
	}
	for id, v := range f.VRFs {
		check(fmt.Sprint("VRF ", id), v.Flood)
	}
	for i, v := range f.Vifs {
		check(fmt.Sprint("vif at ", i), v.Nexthop)
		if _, ok := f.Policies[v.ID]; v.Flags&layout.VifPolicy != 0 && !ok {
			all = append(all, fmt.Sprintf("vif at %d: its policy does not exist", i))
		}
		if rules := f.Policies[v.ID].Rules; slices.Contains(rules, layout.Rule{}) {
			all = append(all, fmt.Sprintf("vif at %d: rules of its policy do not exist", i))
		}
	}
	for id, n := range f.Nexthops {
		if n.Type != layout.Composite {
			continue
		}
		for i, m := range f.MembersOf(id) {
			if m.Nexthop == 0 {
				all = append(all, fmt.Sprintf("composite %d: member %d does not exist", id, i))
			}
			check(fmt.Sprintf("composite %d, member %d", id, i), m.Nexthop)
		}
	}
	return all, nil
}

// consistentTables have no dangling reference, but composites that grow and
// shrink, and vifs with and without policy.
func consistentTables(r *rand.Rand) fib.Tables {
	f := scene(7, 8, 9, model.MPLSoUDP, false)
	for id := uint32(20); id < 20+uint32(r.IntN(20)); id++ {
		f.Nexthops[id] = f.Nexthops[nhTunnel]
		f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 5, 0, byte(id)}), 32)}] = layout.Route{Nexthop: id}
		f.Remotes[layout.AddressOf(netip.AddrFrom4([4]byte{172, 31, 1, byte(id)}))] = layout.Remote{ID: id, Nexthop: id, Encaps: layout.Bits(model.MPLSoUDP)}
	}
	for id := uint32(50); id < 50+uint32(r.IntN(5)); id++ {
		var members []layout.Member
		for range 1 + r.IntN(8) {
			members = append(members, layout.Member{Nexthop: []uint32{nhVif, nhVif2, nhTunnel}[r.IntN(3)], Label: 18})
		}
		f.Nexthops[id] = layout.Nexthop{Type: layout.Composite, VRF: 1}
		f.SetMembers(id, members)
		f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 6, byte(id), 0}), 24)}] = layout.Route{Nexthop: id}
	}
	if r.IntN(2) == 1 {
		v := f.Vifs[7]
		v.Flags |= layout.VifPolicy
		f.Vifs[7] = v
		policy := source{r}.policy()
		for i := range policy.Rules {
			policy.Rules[i].LastPort = 1 // a rule that is never zero
		}
		f.Policies[v.ID] = policy
	}
	return f
}

func TestEveryReferenceHasATargetAtEachMomentOfAnApply(t *testing.T) {
	must.Long(t)
	d := shared(t)
	r := rand.New(rand.NewPCG(3, 4))
	var have *fib.Tables
	for state := range 40 {
		want := consistentTables(r)
		if r.IntN(2) == 0 {
			have = nil // the maps are read
		}
		steps := must.Get(d.plan(want, have))(t)
		have = &want
		for i, s := range steps {
			must.Get(s.update())(t)
			if bad, err := dangling(d); err != nil || len(bad) > 0 {
				t.Fatalf("state %d, after update %d: %v, %v", state, i, bad, err)
			}
		}
		for i := len(steps) - 1; i >= 0; i-- {
			must.Get(steps[i].prune())(t)
			if bad, err := dangling(d); err != nil || len(bad) > 0 {
				t.Fatalf("state %d, after deletion %d: %v, %v", state, i, bad, err)
			}
		}
		if c, err := d.Apply(want); err != nil || c != (Changes{}) {
			t.Fatalf("state %d: Apply makes the changes %+v (%v) after all steps, want none", state, c, err)
		}
	}
}

func TestStrictnessComesAfterTheRemotesThatItAllows(t *testing.T) {
	d := shared(t)
	want := scene(7, 8, 9, model.MPLSoUDP, false)
	want.Settings.Flags |= layout.SettingsStrict
	steps := must.Get(d.plan(want, nil))(t)
	for i, s := range steps {
		must.Get(s.update())(t)
		got := must.Get(d.Dump())(t)
		if got.Settings.Flags&layout.SettingsStrict != 0 && len(got.Remotes) != len(want.Remotes) {
			t.Fatalf("after update %d packets of nodes not yet known would be dropped", i)
		}
	}
}
