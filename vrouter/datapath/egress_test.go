package datapath

import (
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// TestARaisedEgressLimitAppliesAtOnce: what a port has sent at its former limit does not
// count against the new one.
func TestARaisedEgressLimitAppliesAtOnce(t *testing.T) {
	limit := func(f *fib.Tables, ifindex int, bytes uint64) {
		v := f.Vifs[uint32(ifindex)]
		v.Egress = bytes
		f.Vifs[uint32(ifindex)] = v
	}
	r := newRig(t, model.MPLSoUDP, false, nil)
	limit(&r.tables, r.vif, 8000)
	must.Get(r.Apply(r.tables))(t)
	large := frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 9, string(make([]byte, 1300))))
	send := func() string {
		before, _ := r.Drops()
		r.run(t, r.programs.FromWorkload, r.vif, large)
		return r.drop(t, before)
	}
	sent := 0
	for ; sent < 200 && send() == "none"; sent++ {
	}
	if sent < 90 || sent > 110 { // 128 KiB
		t.Errorf("%d packets passed at 8 kB/s", sent)
	}
	limit(&r.tables, r.vif, 125e6)
	must.Get(r.Apply(r.tables))(t)
	must.Equal(t, "none", send())
}
