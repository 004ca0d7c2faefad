package datapath

import (
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

func TestANewVifBeginsWithCountersOfItsOwn(t *testing.T) {
	d := shared(t)
	want := scene(7, 8, 9, model.MPLSoUDP, false)
	must.Get(d.Apply(want))(t)
	cpus := make([]layout.VifCounters, ebpf.MustPossibleCPU())
	cpus[0].RxPackets = 5
	drops := make([]uint64, len(cpus))
	drops[0] = 3
	for _, id := range []uint32{1, 2} {
		must.Succeed(t, d.maps.VifStats.Put(id, cpus))
		must.Succeed(t, d.maps.Drops.Put(layout.DropKey{Vif: id, Reason: 6}, drops))
		for direction := range uint32(2) {
			heads := make([]byte, d.maps.Fragments.ValueSize())
			heads[4] = 7 // fragment_heads.begun
			must.Succeed(t, d.maps.Fragments.Put(2*id+direction, heads))
		}
	}
	gone := want.Vifs[8]
	delete(want.Vifs, 8)
	must.Get(d.Apply(want))(t)
	want.Vifs[18] = gone // its number goes to another port
	must.Get(d.Apply(want))(t)
	stats, err := d.VifStats()
	if err != nil || stats[1].RxPackets != 5 || stats[2].RxPackets != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
	for index, want := range map[uint32]byte{2: 7, 3: 7, 4: 0, 5: 0} {
		if heads, err := d.maps.Fragments.LookupBytes(index); err != nil || heads[4] != want {
			t.Errorf("entry %d of map fragments is %v (%v), want begun %d", index, heads, err, want)
		}
	}
	dropped, err := d.Drops()
	if err != nil || dropped[layout.DropKey{Vif: 1, Reason: 6}] != 3 || dropped[layout.DropKey{Vif: 2, Reason: 6}] != 0 {
		t.Errorf("%v, %v", dropped, err)
	}
}

// The quotas of a new vif and of a new VRF do not count the flows of their ids' former owners.
func TestANewVifAndANewVRFBeginWithoutFlowsForTheirQuotas(t *testing.T) {
	d := shared(t)
	want := scene(7, 8, 9, model.MPLSoUDP, false)
	must.Get(d.Apply(want))(t)
	const vif, vrf = 2, 1
	before := want
	before.Vifs, before.VRFs = map[uint32]layout.Vif{}, map[uint32]layout.VRF{}
	must.Get(d.Apply(before))(t)
	must.Succeed(t, d.maps.VifFlowsBegun.Put(uint32(vif), uint32(5)))
	must.Succeed(t, d.maps.VrfFlowsBegun.Put(uint32(vrf), uint32(7)))
	must.Get(d.Apply(want))(t)
	c := must.Get(d.beginCount(map[uint32]uint32{vif: vrf}))(t)
	must.Succeed(t, c.vifs.subtract())
	must.Succeed(t, c.vrfs.subtract())
	if c.vifs.before[vif] != 5 || c.vrfs.before[vrf] != 7 || c.vifs.now[vif] != 0 || c.vrfs.now[vrf] != 0 {
		t.Errorf("vifs %+v, VRFs %+v: want 5 and 7 flows that have begun, and 0 that have not ended", c.vifs, c.vrfs)
	}
}

func TestALearnedMTUIsForgottenWhenTheTunnelsRemoteChanges(t *testing.T) {
	d := shared(t)
	want := scene(7, 8, 9, model.MPLSoUDP, false)
	must.Get(d.Apply(want))(t)
	now, err := monotonic()
	must.Succeed(t, err)
	for _, id := range []uint32{nhTunnel, nhTunnelEthernet} {
		must.Succeed(t, d.maps.LearnedMtus.Put(id, layout.LearnedMTU{MTU: 1300, UntilNs: now + uint64(time.Hour)}))
	}
	moved := want.Nexthops[nhTunnel]
	other := netip.MustParseAddr("172.31.0.9")
	moved.SetPaths(layout.PathOf(local, other, other, 9))
	want.Nexthops[nhTunnel] = moved
	must.Get(d.Apply(want))(t)
	mtus, err := d.LearnedMTUs()
	if err != nil || len(mtus) != 1 || mtus[nhTunnelEthernet] != 1300 {
		t.Errorf("%v, %v", mtus, err)
	}
}

// A port does not inherit the flows of an older port with the same id, also of another network.
func TestANewVifHasNoFlowsOfAnOlderVif(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, withRules(2))
	if code := r.sendTo(t, remoteOf(1)); code != actRedirect {
		t.Fatalf("a packet that rule 2 allows has action %d, want a redirect", code)
	}
	gone := r.tables.Vifs[uint32(r.vif)]
	policy := r.tables.Policies[1]
	delete(r.tables.Vifs, uint32(r.vif))
	delete(r.tables.Policies, 1)
	must.Get(r.Apply(r.tables))(t)
	r.tables.Vifs[uint32(r.vif)] = gone
	r.tables.Policies = map[uint32]fib.Policy{1: policy}
	must.Get(r.Apply(r.tables))(t)
	flows := 0
	if err := r.Flows(func(k FlowKey, _ Flow) bool {
		if k.Vif == 1 {
			flows++
		}
		return true
	}); err != nil || flows != 0 {
		t.Errorf("the new vif 1 has %d flows, want 0; error %v", flows, err)
	}
}
