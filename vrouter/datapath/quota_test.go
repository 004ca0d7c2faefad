package datapath

import (
	"testing"

	"windtunnel/vrouter/model"
)

// crowd writes flows of a vif of VRF 1 to the table, as if its programs had begun them.
// ages are in seconds.
func crowd(t *testing.T, d *Datapath, vif uint32, protocol uint8, f vrouterFlow, ages ...uint64) {
	t.Helper()
	now, err := monotonic()
	if err != nil {
		t.Fatal(err)
	}
	for _, age := range ages {
		f.Policy, f.SeenNs = 1, now-age*1e9
		key := vrouterFlowKey{Vif: vif, Protocol: protocol, LocalPort: uint16(age)}
		if err := d.maps.Flows.Put(&key, &f); err != nil {
			t.Fatal(err)
		}
		for id, m := range map[uint32]table[uint32, uint32]{
			vif: {"vif_flows_begun", d.maps.VifFlowsBegun, true},
			0:   {"vrf_flows_begun", d.maps.VrfFlowsBegun, true},
		} {
			var n uint32
			if err := m.m.Lookup(id, &n); err != nil {
				t.Fatal(err)
			}
			if err := m.m.Put(id, n+1); err != nil {
				t.Fatal(err)
			}
			if id == 0 {
				if err := m.m.Put(uint32(1), n+1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// ages returns the ages of a vif's flows of a protocol, in seconds: the numbers that crowd
// gave them.
func ages(t *testing.T, d *Datapath, vif uint32, protocol uint8) map[uint64]bool {
	t.Helper()
	all := map[uint64]bool{}
	err := table[vrouterFlowKey, vrouterFlow]{"flows", d.maps.Flows, false}.each(func(k vrouterFlowKey, _ vrouterFlow) {
		if k.Vif == vif && k.Protocol == protocol {
			all[uint64(k.LocalPort)] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTheOldestUnansweredFlowsOfACrowdedPortMakeRoom has a table of 60 entries. A port that
// has it alone may have 20.
func TestTheOldestUnansweredFlowsOfACrowdedPortMakeRoom(t *testing.T) {
	const udp, tcp = 17, 6
	limits := small
	limits.Flows = 60
	d := open(t, Options{Pins: pins(t), Limits: limits})
	if _, err := d.Apply(scene(7, 8, 9, model.MPLSoUDP, false)); err != nil {
		t.Fatal(err)
	}
	near := func(want bool) {
		t.Helper()
		if got, err := d.NearQuota(); err != nil || got != want {
			t.Errorf("near a quota: %v, %v, want %v", got, err, want)
		}
	}
	expire := func(want, stay int) {
		t.Helper()
		if n, left, err := d.ExpireFlows(); err != nil || n != want || left != stay {
			t.Errorf("removed %d flows, %d left, %v; want %d and %d", n, left, err, want, stay)
		}
	}
	near(false)
	crowd(t, d, 1, tcp, vrouterFlow{Tcp: tcpSYN | tcpEstablished}, 20, 21, 22, 23)
	crowd(t, d, 1, udp, vrouterFlow{Packets: [2]uint64{1, 1}}, 24, 25)
	crowd(t, d, 2, udp, vrouterFlow{Packets: [2]uint64{1, 0}}, 28, 29) // another port's are older, and stay
	expire(0, 8)
	near(false)
	crowd(t, d, 1, udp, vrouterFlow{Packets: [2]uint64{1, 0}}, 5, 6, 7, 8, 9, 10, 11)
	crowd(t, d, 1, tcp, vrouterFlow{Tcp: tcpSYN}, 4)
	near(false) // 14 of port 1: less than 4/5 of 60 - 16 - 16
	expire(0, 16)
	crowd(t, d, 1, tcp, vrouterFlow{Tcp: tcpSYN | tcpEstablished | tcpRST}, 3, 9)
	near(false) // 16 of 60 - 18 - 18
	crowd(t, d, 1, udp, vrouterFlow{Packets: [2]uint64{1, 0}}, 12, 13)
	near(true) // 18 of 60 - 20 - 20
	expire(4, 16)
	near(false)
	left := ages(t, d, 1, udp)
	for age, want := range map[uint64]bool{5: true, 6: true, 7: true, 8: true, 9: true, 10: false, 11: false, 12: false, 13: false, 24: true, 25: true} {
		if left[age] != want {
			t.Errorf("UDP flow of %d seconds is in the table: %v, want %v", age, left[age], want)
		}
	}
	if tcps := ages(t, d, 1, tcp); len(tcps) != 7 {
		t.Errorf("connections %v, want all 7", tcps)
	}
	if other := ages(t, d, 2, udp); len(other) != 2 {
		t.Errorf("the other port has %d flows, want 2", len(other))
	}
}
