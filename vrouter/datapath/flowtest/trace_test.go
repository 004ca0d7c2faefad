package flowtest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
)

// enum trace_kind.
const (
	_ = iota
	traceFlow
	tracePolicy
)

// steps reads what the tracing programs noted, and empties it.
func (h *harness) steps() (all []string) {
	h.t.Helper()
	var tr layout.Trace
	must.Succeed(h.t, h.Traces.Lookup(uint32(0), &tr))
	for _, s := range tr.Step[:tr.Count] {
		all = append(all, fmt.Sprintf("kind %d vrf %d: found %d id %d value %d", s.Kind, s.VRF, s.Found, s.ID, s.Value))
	}
	h.put(h.Traces, uint32(0), layout.Trace{})
	return all
}

func TestTracingDoesNotChangeTheFlowTable(t *testing.T) {
	h := load(t, traced)
	h.apply(policy{generation: 1, rules: []rule{{}, {egress: true, allow: true, protocol: 17}}})
	h.compose(21, 22)
	k := flowKey(17, local4, remote4)
	want := layout.Flow{SeenNs: monotonic(t), Packets: [2]uint64{3, 4}, Rule: 2, Policy: 1}
	h.put(h.Flows, k, want)

	for _, c := range []struct {
		name    string
		verdict int32
		frame   []byte
		steps   []string
	}{
		{"known", admitted, udp(local4, remote4, 1), []string{
			fmt.Sprintf("kind %d vrf 7: found 1 id 2 value %d", traceFlow, flowForward)}},
		{"new and allowed by rule 2", admitted, udp(local4, withPort(remote4, 81), 1), []string{
			fmt.Sprintf("kind %d vrf 7: found 0 id 0 value 0", traceFlow),
			fmt.Sprintf("kind %d vrf 7: found 1 id 2 value 1", tracePolicy)}},
		{"new and denied by the default", denied, tcp(local4, remote4, "S"), []string{
			fmt.Sprintf("kind %d vrf 7: found 0 id 0 value 0", traceFlow),
			fmt.Sprintf("kind %d vrf 7: found 0 id 0 value 0", tracePolicy)}},
		{"a fragment's head", admitted, split(udp(local4, remote4, 4000), 1480, 1)[0], []string{
			fmt.Sprintf("kind %d vrf 7: found 1 id 2 value %d", traceFlow, flowForward)}},
	} {
		h.expect(c.name, c.verdict, fromWorkload, c.frame)
		if diff := cmp.Diff(c.steps, h.steps()); diff != "" {
			t.Errorf("%s: steps (-want +got):\n%s", c.name, diff)
		}
	}
	must.Equal(t, 1, h.choose(udp(local4, remote4, 1), 2, 1))
	h.unpoliced()
	must.Equal(t, 1, h.choose(udp(local4, withPort(remote4, 82), 1), 2, 1))
	if got := h.flow(k); got != want {
		t.Errorf("entry %+v, want it as it was, %+v", got, want)
	}
	if n, f := h.count(h.Flows), h.heads(vifID, fromWorkload); n != 1 || f != 0 {
		t.Errorf("there are %d flows and %d first fragments, want 1 flow and no first fragment", n, f)
	}
}
