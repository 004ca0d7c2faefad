package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// received returns how many bytes the workload's device has received.
func (w *workload) received(t *testing.T) int {
	t.Helper()
	text, err := w.command("cat", "/sys/class/net/eth0/statistics/rx_bytes")
	must.Succeed(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(text))
	must.Succeed(t, err)
	return n
}

// TestAWorkloadDoesNotPassItsEgressLimit: the limit's queue is at the workload's own
// device, and packet sockets can bypass it.
func TestAWorkloadDoesNotPassItsEgressLimit(t *testing.T) {
	const rate, lasting = 10_000_000, time.Second
	b := sharedBed(t, options{})
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	for i := range b.state.Ports {
		if b.state.Ports[i].Name == x.port.Name {
			b.state.Ports[i].Bandwidth.Egress = rate
		}
	}
	b.apply()
	flood := rawFrames{frames: [][]byte{udpFrame(t, x.port.MAC, model.RouterMAC, x.ip(4), y.ip(4), 7777, make([]byte, 1400))}}
	before, began := y.received(t), time.Now()
	flood.while = func() bool { return time.Since(began) < lasting }
	b.must(in(x.ns, func() error { return flood.send("eth0") }))
	got := y.received(t) - before
	took := time.Since(began) // on a busy machine longer than lasting
	// The bucket's first contents come on top: 20 ms and 128 KiB.
	if most := int(rate/8*1.1*took.Seconds()) + 192<<10; got > most || got < rate/8/2 {
		t.Errorf("%d bytes arrived in %v, want between %d and %d", got, took, rate/8/2, most)
	}
	if b.nodes[0].drops()["egress_limit"] == 0 {
		t.Error("no drops under egress_limit")
	}
}
