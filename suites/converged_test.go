package suites

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

// Over one link every combination is measured without VMQ. With VMQ and over a team,
// those with send offload are. An id says what its scenario is.
func TestConvergedCrossesItsSettings(t *testing.T) {
	p := plan(t, "converged")
	var links, teams int
	for _, s := range p.Scenarios {
		settings, direction, _ := strings.Cut(s.ID, "/")
		has := map[string]bool{}
		for part := range strings.SplitSeq(settings, "-") {
			has[part] = true
		}
		want := suite.Fabric{Name: s.Fabric.Name, Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1}
		if has["9000"] {
			want.MTU = 9000 // 9014 bytes with the Ethernet header
		}
		if has["10g"] {
			want.Rate = 10e9
		}
		if has["vmq"] || has["dvmq"] {
			want.Queues, want.Steering, want.MovingQueues = 2, suite.ByMAC, has["dvmq"]
		}
		if has["cut"] {
			want.Cut = 700 * time.Millisecond
		}
		if has["team"] {
			want.Links, want.Team = 2, suite.Bond
		}
		if diff := cmp.Diff(want, s.Fabric); diff != "" {
			t.Errorf("%s: fabric (-want +got):\n%s", s.ID, diff)
		}
		kind := suite.Container
		if has["vm"] {
			kind = suite.VM
		}
		if e := s.Endpoint; e.Spread != has["spread"] || e.NoSegmentation != has["no"] || e.Kind != kind || e.HostVNIC != has["host"] || e.Kind == suite.VM && e.Spread != (e.CPUs == 2) {
			t.Errorf("%s: endpoint %s", s.ID, s.Endpoint)
		}
		pairs := 1
		if has["two"] || has["host"] {
			pairs = 2
		}
		if s.System != "bridge" || s.Pairs != pairs {
			t.Errorf("%s: %d pairs over %s", s.ID, s.Pairs, s.System)
		}
		both, measured := map[string]suite.Direction{"half": suite.Forward, "full": suite.Both}[direction]
		if !measured { // failover
			if s.Workload.Rate != 400e6 || s.Tool != "builtin" || !has["team"] {
				t.Errorf("%s: %s by %s", s.ID, s.Workload, s.Tool)
			}
			continue
		}
		tool := "fio"
		if has["vm"] || has["host"] {
			tool = "builtin"
		}
		if s.Workload.Direction != both || s.Workload.Streams != 4 || s.Tool != tool {
			t.Errorf("%s: %s by %s", s.ID, s.Workload, s.Tool)
		}
		switch {
		case has["team"]:
			teams++
		case kind == suite.Container && pairs == 1 && !has["dvmq"]:
			links++
		}
	}
	if links != 2*2*2*2+2*2*2+5 || teams != 8 || len(p.Scenarios) != links+teams+2+6+3+2+4 {
		t.Errorf("%d scenarios, %d of containers over a link and %d over a team, want 54, 29 (8 with VMQ, 5 at 10 Gbit/s) and 8", len(p.Scenarios), links, teams)
	}
}

func TestConvergedTurnsEachSettingOnAndOff(t *testing.T) {
	p := plan(t, "converged")
	want := []string{
		"9000-lso/half over 1500-lso/half", "9000-lso/full over 1500-lso/full",
		"9000-10g-lso/half over 1500-10g-lso/half", "9000-10g-lso/full over 1500-10g-lso/full", "9000-vm/half over 1500-vm/half",
		"1500-lso/half over 1500-no-lso/half", "1500-lso/full over 1500-no-lso/full",
		"1500-team-lso/half over 1500-lso/half", "1500-team-lso/full over 1500-lso/full",
		"9000-vmq-lso/full over 9000-lso/full", "9000-dvmq-lso/full over 9000-lso/full",
		"9000-vmq-two-vnics/full over 9000-two-vnics/full", "9000-dvmq-two-vnics/full over 9000-two-vnics/full",
		"9000-vm-spread/full over 9000-vm/full", "9000-vmq-vm/full over 9000-vm/full", "9000-vmq-vm-spread/full over 9000-vm/full",
		"9000-lso-spread/full over 9000-lso/full",
	}
	var got []string
	for _, c := range p.Comparisons {
		got = append(got, c.Subject+" over "+c.Baseline)
	}
	must.Equal(t, want, got)
	must.Equal(t, 4, len(p.Ladders))
	for _, l := range p.Ladders {
		for i, id := range l.Steps[1:] {
			a, b := scenario(t, p, l.Steps[i]), scenario(t, p, id)
			fabric, endpoint := a.Fabric != b.Fabric, a.Endpoint != b.Endpoint
			if fabric == endpoint || a.Workload != b.Workload {
				t.Errorf("from %s to %s changes fabric %v, endpoint %v", a.ID, b.ID, fabric, endpoint)
			}
		}
	}
}

func TestConvergedHasTheFiguresThatTheTextStates(t *testing.T) {
	var got []string
	for _, f := range plan(t, "converged").Published {
		got = append(got, strings.Join([]string{f.Table, f.Row, f.Scenario, f.Metric, f.Printed}, "; "))
	}
	want := []string{
		"text; without jumbo frames; 1500-lso/half; throughput_bps; 4.8 Gbps",
		"text; jumbo frames (9014 bytes); 9000-lso/half; throughput_bps; 9 Gbps",
		"text; jumbo frames (9014 bytes); ; ; the biggest",
		"cited; lower end; 1500-lso/half; throughput_bps; 3.5 Gbps",
		"cited; upper end; 1500-lso/half; throughput_bps; 4.5 Gbps",
	}
	must.Equal(t, want, got)
}

func TestConvergedsShortFormRunsOnTwoCPUsInThreeMinutes(t *testing.T) {
	data := must.Get(Read("converged"))(t)
	s := must.Get(suite.Parse("converged.yaml", data))(t)
	p := must.Get(s.Expand(suite.ExpandOptions{Vocabulary: vocabulary, Short: true}))(t)
	if e := p.Estimate(); e > 3*time.Minute {
		t.Errorf("it is estimated at %v", e)
	}
	for _, s := range p.Scenarios {
		if s.Fabric.Queues > 1 || s.Endpoint.Spread {
			t.Errorf("%s would be skipped on two CPUs", s.ID)
		}
	}
	if len(p.Scenarios) != 7 || len(p.Comparisons) != 5 {
		t.Errorf("%d scenarios and %d comparisons, want 7 and 5", len(p.Scenarios), len(p.Comparisons))
	}
}
