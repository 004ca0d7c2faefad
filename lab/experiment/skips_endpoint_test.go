package experiment

import (
	"context"
	"errors"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestScenariosThatASharedCPUMakesMeaninglessAreSkippedWithTheNumbers(t *testing.T) {
	queues := scenario("bridge", func(sc *suite.Scenario) { sc.ID, sc.Fabric.Queues = "queues", 3 })
	spread := scenario("bridge", func(sc *suite.Scenario) { sc.ID, sc.Endpoint.Spread = "spread", true })
	moving := scenario("bridge", func(sc *suite.Scenario) { sc.ID, sc.Fabric.MovingQueues = "moving", true })
	plan := planOf(scenario("bridge", nil), queues, spread, moving)
	for _, c := range []struct {
		cpus int
		want map[string]string
	}{
		{2, map[string]string{"queues": "needs 3 CPUs per node, this machine gives 1", "spread": "needs 2 CPUs per node, this machine gives 1", "moving": "needs 2 CPUs per node, this machine gives 1"}},
		{6, map[string]string{"queues": "needs 3 CPUs per node, this machine gives 2"}}, // one for the wire, one for the engine
		{8, nil},
	} {
		skips := skipsOn(plan, machine(c.cpus))
		if len(skips) != len(c.want) {
			t.Errorf("%d CPUs: %v are skipped, want %v", c.cpus, skips, c.want)
		}
		for id, say := range c.want {
			if !strings.Contains(skips[id], say) {
				t.Errorf("%d CPUs, %s: %q, want %q", c.cpus, id, skips[id], say)
			}
		}
	}
}

func TestACutAfterTheMeasuredPartIsSkipped(t *testing.T) {
	late := scenario("bridge", func(sc *suite.Scenario) { sc.ID, sc.Fabric.Cut = "late", sc.Timing.Duration })
	inTime := scenario("bridge", func(sc *suite.Scenario) { sc.Fabric.Cut = sc.Timing.Duration - 1 })
	skips := skipsOn(planOf(late, inTime), machine(4))
	if len(skips) != 1 || !strings.Contains(skips["late"], "cut after 700ms") {
		t.Errorf("skipped: %v; want the late cut", skips)
	}
}

func TestNodesOfMoreCPUsThanTheMachineHasAreSkipped(t *testing.T) {
	eight := scenario("bridge", func(sc *suite.Scenario) { sc.ID, sc.Fabric.CPUs = "eight", 8 })
	two := scenario("bridge", func(sc *suite.Scenario) { sc.ID, sc.Fabric.CPUs = "two", 2 })
	narrow := scenario("bridge", func(sc *suite.Scenario) { sc.ID, sc.Fabric.CPUs, sc.Endpoint.Spread = "narrow", 1, true })
	for cpus, want := range map[int]map[string]string{
		2:  {"eight": "nodes of 8 CPUs: needs 8 CPUs per node, this machine gives 1", "two": "nodes of 2 CPUs: needs 2", "narrow": "needs 2 CPUs per node, this machine gives 1"},
		6:  {"eight": "nodes of 8 CPUs: needs 8 CPUs per node, this machine gives 2", "narrow": "spread"},
		18: {"narrow": "spread"},
	} {
		skips := skipsOn(planOf(eight, two, narrow), machine(cpus))
		if len(skips) != len(want) {
			t.Errorf("%d CPUs: %v are skipped, want %v", cpus, skips, want)
		}
		for id, say := range want {
			if !strings.Contains(skips[id], say) {
				t.Errorf("%d CPUs, %s: %q, want %q", cpus, id, skips[id], say)
			}
		}
	}
}

func TestDelaysAndSharesNeedTheirKernelFeatures(t *testing.T) {
	far := scenario("raw", func(sc *suite.Scenario) { sc.ID, sc.Fabric.Delay = "far", 1000 })
	slow := scenario("raw", func(sc *suite.Scenario) { sc.ID, sc.Fabric.CPUShare = "slow", 0.25 })
	for _, c := range []struct{ missing, skipped string }{{"packet", "far"}, {"cpu-share", "slow"}, {"", ""}} {
		skips := skipsOn(planOf(far, slow), machine(2, c.missing))
		if c.skipped == "" {
			if len(skips) != 0 {
				t.Errorf("skipped without a reason: %v", skips)
			}
		} else if len(skips) != 1 || !strings.Contains(skips[c.skipped], "no "+c.missing+" in this kernel; remedy for "+c.missing) {
			t.Errorf("without %s: %v", c.missing, skips)
		}
	}
}

func TestEndpointSettingsOfRawAreRefusedWithTheReason(t *testing.T) {
	for _, e := range []suite.Endpoint{{Spread: true}, {NoSegmentation: true}} {
		sc := scenario("raw", func(sc *suite.Scenario) { sc.Endpoint = e })
		const say = "raw has neither containers nor VMs"
		if why := skipsOn(planOf(sc), machine(8))["raw"]; !strings.Contains(why, say) {
			t.Errorf("%s: skipped with %q", e, why)
		}
		b, err := NewBench(context.Background(), nil, "never", &sc, 2)
		var f *sample.Failure
		if b != nil || !errors.As(err, &f) || f.Kind != sample.Unsupported || !strings.Contains(f.Message, say) {
			t.Errorf("%s: NewBench gave %v, %v", e, b, err)
		}
	}
	named := scenario("raw", func(sc *suite.Scenario) { sc.Endpoint.Name = "plain" })
	must.Equal(t, "", skipsOn(planOf(named), machine(2))["raw"])
}

func TestSpreadIsSkippedOnAPlainVethPair(t *testing.T) {
	sc := scenario("bridge", func(sc *suite.Scenario) { sc.Endpoint.Spread, sc.Fabric.Kind = true, suite.Veth })
	if why := skipsOn(planOf(sc), machine(8))["bridge"]; !strings.Contains(why, "spread over the node's CPUs already") {
		t.Errorf("skipped with %q", why)
	}
}

func TestParallelLinksSuitABridgeWhereTheyAreBonded(t *testing.T) {
	for team, say := range map[suite.Team]string{suite.Multipath: "set team: bond", suite.Bond: ""} {
		for _, system := range []string{"bridge", "macvlan"} {
			sc := scenario(system, func(sc *suite.Scenario) { sc.Fabric.Links, sc.Fabric.Team = 2, team })
			why := skipsOn(planOf(sc), machine(2))[system]
			if say == "" && why != "" || !strings.Contains(why, say) {
				t.Errorf("%s, team %q: skipped with %q, want %q", system, team, why, say)
			}
		}
	}
}
