package datapath

import (
	"encoding/binary"
	"maps"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// crowd writes flows of a vif in VRF 1 to the table, and counts them like the programs.
// ages: seconds since the last packet of each flow.
func crowd(t *testing.T, d *Datapath, vif uint32, protocol uint8, f layout.Flow, ages ...uint64) {
	t.Helper()
	now := must.Get(monotonic())(t)
	for _, age := range ages {
		f.Policy, f.SeenNs = 1, now-age*1e9
		key := layout.FlowKey{Vif: vif, Protocol: protocol, LocalPort: uint16(age)}
		must.Succeed(t, d.maps.Flows.Put(&key, &f))
		for id, m := range map[uint32]table[uint32, uint32]{
			vif: {"vif_flows_begun", d.maps.VifFlowsBegun, true},
			0:   {"vrf_flows_begun", d.maps.VrfFlowsBegun, true},
		} {
			var n uint32
			must.Succeed(t, m.m.Lookup(id, &n))
			must.Succeed(t, m.m.Put(id, n+1))
			if id == 0 {
				must.Succeed(t, m.m.Put(uint32(1), n+1))
			}
		}
	}
}

// ages returns the flows of a vif and a protocol, each by the age that crowd gave it, in
// seconds.
func ages(t *testing.T, d *Datapath, vif uint32, protocol uint8) map[uint64]bool {
	t.Helper()
	all := map[uint64]bool{}
	err := table[layout.FlowKey, layout.Flow]{"flows", d.maps.Flows, false}.each(func(k layout.FlowKey, _ layout.Flow) {
		if k.Vif == vif && k.Protocol == protocol {
			all[uint64(k.LocalPort)] = true
		}
	})
	must.Succeed(t, err)
	return all
}

// The flow table has 60 entries. If only one port has flows, its quota is 20.
func TestTheOldestUnansweredFlowsOfACrowdedPortMakeRoom(t *testing.T) {
	const udp, tcp = 17, 6
	limits := small
	limits.Flows = 60
	d := open(t, Options{Pins: pins(t), Limits: limits})
	must.Get(d.Apply(scene(7, 8, 9, model.MPLSoUDP, false)))(t)
	near := func(want bool) {
		t.Helper()
		if got, err := d.NearQuota(); err != nil || got != want {
			t.Errorf("NearQuota returns %v, %v, want %v", got, err, want)
		}
	}
	expire := func(want, stay int) {
		t.Helper()
		if n, left, err := d.ExpireFlows(); err != nil || n != want || left != stay {
			t.Errorf("ExpireFlows removed %d flows and left %d (%v), want %d removed and %d left", n, left, err, want, stay)
		}
	}
	near(false)
	crowd(t, d, 1, tcp, layout.Flow{TCP: tcpSYN | tcpEstablished}, 20, 21, 22, 23)
	crowd(t, d, 1, udp, layout.Flow{Packets: [2]uint64{1, 1}}, 24, 25)
	crowd(t, d, 2, udp, layout.Flow{Packets: [2]uint64{1, 0}}, 28, 29) // older flows of another port stay
	expire(0, 8)
	near(false)
	crowd(t, d, 1, udp, layout.Flow{Packets: [2]uint64{1, 0}}, 1, 2, 3, 4, 5, 6, 7)
	crowd(t, d, 1, tcp, layout.Flow{TCP: tcpSYN}, 9)
	near(false) // port 1 has 14 flows, less than 4/5 of 60 - 16 - 16
	expire(0, 16)
	crowd(t, d, 1, tcp, layout.Flow{TCP: tcpSYN | tcpEstablished | tcpRST}, 3, 8)
	crowd(t, d, 1, udp, layout.Flow{Packets: [2]uint64{1, 0}}, 12)
	near(false) // 17 flows, less than 4/5 of 60 - 19 - 19
	crowd(t, d, 1, udp, layout.Flow{Packets: [2]uint64{1, 0}}, 13)
	near(true) // 18 flows, more than 4/5 of 60 - 20 - 20
	expire(4, 16)
	near(false)
	left := ages(t, d, 1, udp)
	for age, want := range map[uint64]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 12: false, 13: false, 24: true, 25: true} {
		if left[age] != want {
			t.Errorf("the UDP flow of age %d s is in the table: %v, want %v", age, left[age], want)
		}
	}
	want := map[uint64]bool{3: true, 20: true, 21: true, 22: true, 23: true} // without the half-open flow of age 9 and the closed flow of age 8
	if got := ages(t, d, 1, tcp); !maps.Equal(got, want) {
		t.Errorf("the TCP flows in the table have the ages %v, want %v", got, want)
	}
	must.Equal(t, 2, len(ages(t, d, 2, udp)))
	crowd(t, d, 1, udp, layout.Flow{Packets: [2]uint64{1, 0}}, 31, 32, 33, 34) // expired after 30 s
	near(true)
	expire(4, 16)
}

// A workload opens 3,000 flows a second without an answer, which is more than the checks delete in this
// time. After each flood, one check makes room for new flows, however many floods there were before.
func TestOneCheckMakesRoomAfterEachFlood(t *testing.T) {
	const inQuarterSecond = 750
	limits := small
	limits.Flows = 8192
	dir, devices := pins(t), enterSpace(t, 3)
	r := &rig{Datapath: open(t, Options{Pins: dir, Limits: limits}), vif: devices[0], vif2: devices[1], fabric: devices[2]}
	f := scene(r.vif, r.vif2, r.fabric, model.MPLSoUDP, false)
	withRules(1)(&f)
	must.Get(r.Apply(f))(t)
	text := frame(macA, model.RouterMAC, packet(t, addrA, remoteOf(0), 0, 64, "x"))
	port := uint16(0)
	begin := func() (admitted bool) {
		port++
		binary.BigEndian.PutUint16(text[14+20:], port) // no program reads the checksum
		code, _ := r.run(t, r.programs.FromWorkload, r.vif, text)
		return code == actRedirect
	}
	check := func() {
		t.Helper()
		near := must.Get(r.NearQuota())(t)
		if !near {
			return
		}
		if n, _, err := r.ExpireFlows(); err != nil || n == 0 {
			t.Errorf("a check near the quota deletes %d flows, %v", n, err)
		}
	}
	for flood := range 3 {
		refused := 0
		for range 12 {
			for range inQuarterSecond {
				if !begin() {
					refused++
				}
			}
			check()
		}
		for begin() { // the flood goes on until the quota is exceeded
		}
		if check(); !begin() {
			t.Errorf("after flood %d, one check makes no room for a flow", flood+1)
		}
		t.Logf("flood %d: %d of %d flows were refused", flood+1, refused, 12*inQuarterSecond)
	}
}
