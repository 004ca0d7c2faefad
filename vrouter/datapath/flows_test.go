package datapath

import (
	"testing"

	"windtunnel/vrouter/model"
)

func TestExpiryJudgesFlowsAsTheDataPathDoes(t *testing.T) {
	now, err := monotonic()
	if err != nil {
		t.Fatal(err)
	}
	const idle, closed = 100, 10
	for _, c := range []struct {
		name         string
		idle, closed uint32
		vif          uint32
		protocol     uint8
		tcp          uint8
		age          uint64
		stays        bool
	}{
		{"UDP, young", idle, closed, 1, 17, 0, 50, true},
		{"UDP, idle", idle, closed, 1, 17, 0, 150, false},
		{"UDP without a limit", 0, closed, 1, 17, 0, 1500, true},
		{"TCP, half open", idle, closed, 1, 6, tcpSYN, 50, false},
		{"TCP, established", idle, closed, 1, 6, tcpSYN | tcpEstablished, 50, true},
		{"TCP, closed", idle, closed, 1, 6, tcpSYN | tcpEstablished | tcpFINIn | tcpFINOut, 50, false},
		{"TCP, closed on one side", idle, closed, 1, 6, tcpSYN | tcpEstablished | tcpFINIn, 50, true},
		{"TCP, reset", idle, closed, 1, 6, tcpSYN | tcpEstablished | tcpRST, 50, false},
		{"TCP, closed, no limit for it", idle, 0, 1, 6, tcpRST, 150, true},
		{"TCP, reset, no limit when idle", 0, closed, 1, 6, tcpRST, 50, false},
		{"of a vif that is gone", 0, 0, 9, 17, 0, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, Options{Pins: pins(t)})
			want := scene(7, 8, 9, model.MPLSoUDP, false)
			want.Settings.FlowIdle, want.Settings.FlowClosed = c.idle, c.closed
			if _, err := d.Apply(want); err != nil {
				t.Fatal(err)
			}
			key := vrouterFlowKey{Vif: c.vif, Protocol: c.protocol, LocalPort: 80}
			if err := d.maps.Flows.Put(&key, &vrouterFlow{SeenNs: now - min(now, c.age*1e9), Tcp: c.tcp}); err != nil {
				t.Fatal(err)
			}
			n, left, err := d.ExpireFlows()
			if err != nil || (n == 0) != c.stays || n+left != 1 {
				t.Errorf("removed %d, left %d, %v", n, left, err)
			}
			var f vrouterFlow
			if err := d.maps.Flows.Lookup(&key, &f); (err == nil) != c.stays {
				t.Errorf("lookup: %v", err)
			}
		})
	}
}
