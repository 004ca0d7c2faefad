package agent

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
)

// Bits of tcp in struct flow.
const (
	tcpSYN         = 1
	tcpEstablished = 2
)

// putFlows writes n TCP flows of the vif with id 1 into the map flows. tcp: their state.
func putFlows(t *testing.T, flows *ebpf.Map, n uint32, tcp byte) {
	t.Helper()
	key, value := make([]byte, flows.KeySize()), make([]byte, flows.ValueSize())
	var now unix.Timespec
	must.Succeed(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	binary.NativeEndian.PutUint32(key, 1)
	key[40], value[1] = unix.IPPROTO_TCP, tcp
	binary.NativeEndian.PutUint64(value[24:], uint64(now.Nano())) // seen_ns of struct flow
	for i := range n {
		binary.NativeEndian.PutUint32(key[4:], i)
		must.Succeed(t, flows.Put(key, value))
	}
}

func TestAFlowTableNearAQuotaIsAProblem(t *testing.T) {
	b := newBedOf(t, nil, "a")
	a := b.nodes["a"]
	putFlows(t, pinnedMap(t, a.config, "flows"), agenttest.TestLimits.Flows*2/5+1, tcpSYN|tcpEstablished)
	must.Eventually(t, "the report", func() error {
		return a.complains("the flow table has", "one network may have half", "raise limits.flows")
	})
}

// If no flow of a crowded port can be deleted, the next check is soon, not after the repair
// interval: new unanswered flows may follow at once.
func TestACrowdedPortIsCheckedAgainSoon(t *testing.T) {
	const flows = 3000
	b := newBedOf(t, func(c *config.Config) { c.RepairInterval = time.Hour }, "a")
	c := b.nodes["a"].config
	table, ended := pinnedMap(t, c, "flows"), pinnedMap(t, c, "vif_flows_ended")
	putFlows(t, table, flows, tcpSYN|tcpEstablished)
	for name, id := range map[string]uint32{"vif_flows_begun": 1, "vrf_flows_begun": 0} {
		must.Succeed(t, pinnedMap(t, c, name).Put(id, uint32(flows+1))) // one flow has ended
	}
	must.Eventually(t, "a check that deletes nothing", func() error {
		var n uint32
		must.Succeed(t, ended.Lookup(uint32(1), &n))
		if n == 0 {
			return errors.New("the flows were not counted")
		}
		return nil
	})
	putFlows(t, table, 10, tcpSYN)
	must.Eventually(t, "a check that deletes the half-open flows", func() error {
		n := 0
		var key, value []byte
		for all := table.Iterate(); all.Next(&key, &value); {
			n++
		}
		if n != flows-10 {
			return errors.New("the half-open flows are still there")
		}
		return nil
	})
}
