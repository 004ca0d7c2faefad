package suite

import (
	"testing"

	"windtunnel/internal/must"
)

func TestALoadRunsBesideRequestsInItsDirection(t *testing.T) {
	p := mustExpand(t, `suite: loaded
workloads:
  idle: {kind: tcp_rr}
  up: {kind: tcp_rr, load: 1}
  both: {kind: tcp_rr, load: 8, direction: both}
scenarios:
  - {system: bridge, workload: [idle, up, both]}
`, ExpandOptions{})
	idle, up, both := p.Scenarios[0], p.Scenarios[1], p.Scenarios[2]
	if idle.Workload.Load != 0 || idle.Workload.Direction != "" || !idle.Fabric.NoCoalescing {
		t.Errorf("without a load: %+v on %+v", idle.Workload, idle.Fabric)
	}
	if up.Workload.Load != 1 || up.Workload.Direction != Forward || up.Fabric.NoCoalescing {
		t.Errorf("with a load: %+v on %+v", up.Workload, up.Fabric)
	}
	if both.Workload.Load != 8 || both.Workload.Direction != Both {
		t.Errorf("with a load in both directions: %+v", both.Workload)
	}
	if got, want := both.Workload.String(), "TCP request/response 1 B, beside 8 streams, both ways"; got != want {
		t.Errorf("the traffic is described as %q, want %q", got, want)
	}
}

func TestALoadNeedsRequestsOnOneConnection(t *testing.T) {
	for entry, want := range map[string]string{
		"kind: tcp_stream, load: 2":        "load has no meaning for tcp_stream",
		"kind: udp_rr, load: 2":            "load has no meaning for udp_rr",
		"kind: tcp_rr, direction: reverse": "direction has no meaning for workload \"w\", which has no load",
		"kind: tcp_rr, load: 1025":         "1025",
	} {
		_, err := Parse("s.yaml", []byte("suite: s\nworkloads:\n  w: {"+entry+"}\nscenarios:\n  - {system: bridge}\n"))
		must.Fail(t, err, want)
	}
}
