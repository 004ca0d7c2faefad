package agent

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/vrouter/agent/agenttest"
)

func TestAFlowTableNearAQuotaIsAProblem(t *testing.T) {
	b := newBedOf(t, nil, "a")
	a := b.nodes["a"]
	flows := pinnedMap(t, a.config, "flows")
	key, value := make([]byte, flows.KeySize()), make([]byte, flows.ValueSize())
	binary.NativeEndian.PutUint32(key, 1) // id of a vif
	var now unix.Timespec
	agenttest.Must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	binary.NativeEndian.PutUint64(value[24:], uint64(now.Nano())) // seen_ns of struct flow
	for i := range agenttest.TestLimits.Flows*2/5 + 1 {
		binary.NativeEndian.PutUint32(key[4:], i)
		agenttest.Must(t, flows.Put(key, value))
	}
	agenttest.Eventually(t, "the report", func() error {
		return a.complains("the flow table has", "one network may have half", "raise limits.flows")
	})
}
