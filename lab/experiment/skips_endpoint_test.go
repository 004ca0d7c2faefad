package experiment

import (
	"context"
	"errors"
	"strings"
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestWhatASharedCPUWouldMakeMeaninglessIsSkippedWithTheNumbers(t *testing.T) {
	queues := scenario("bridge", func(sc *suite.Scenario) { sc.ID, sc.Fabric.Queues = "queues", 3 })
	spread := scenario("bridge", func(sc *suite.Scenario) { sc.ID, sc.Endpoint.Spread = "spread", true })
	plan := planOf(scenario("bridge", nil), queues, spread)
	for _, c := range []struct {
		cpus int
		want map[string]string
	}{
		{2, map[string]string{"queues": "needs 3 CPUs per node, this machine gives 1", "spread": "needs 2 CPUs per node, this machine gives 1"}},
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

func TestRawHasNoEndpointsToSetAndIsRefusedWithTheReason(t *testing.T) {
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
	if why := skipsOn(planOf(named), machine(2))["raw"]; why != "" {
		t.Errorf("raw with a plain endpoint is skipped: %s", why)
	}
}

func TestAPlainVethPairSpreadsAlready(t *testing.T) {
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
