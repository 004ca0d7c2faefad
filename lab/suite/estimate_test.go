package suite

import (
	"strings"
	"testing"
	"time"
)

func TestTheEstimateIncludesTheSetUpOfSystems(t *testing.T) {
	p := &Plan{Trials: 3, Scenarios: []Scenario{{System: "bridge"}, {System: "evpn"}, {System: "evpn"}}}
	without := p.Estimate()
	p.SetUp = map[string]time.Duration{"evpn": 2 * time.Second}
	if got := p.Estimate() - without; got != 3*2*2*time.Second {
		t.Errorf("3 trials of 2 scenarios of a system that takes 2 s take %v longer", got)
	}
	if p.WorstCase() < p.Estimate() {
		t.Errorf("at worst %v, typically %v", p.WorstCase(), p.Estimate())
	}
}

func TestTheEstimateLeavesOutSkippedScenariosAndIncludesTheTimeOfTools(t *testing.T) {
	timing := Timing{Duration: time.Second}
	one := &Plan{Trials: 3, Scenarios: []Scenario{{ID: "a", Timing: timing}}}
	two := &Plan{Trials: 3, Scenarios: []Scenario{{ID: "a", Timing: timing}, {ID: "b", System: "evpn", Timing: timing}},
		SetUp: map[string]time.Duration{"evpn": time.Minute}, Skipped: map[string]string{"b": "no evpn here"}}
	if two.Estimate() != one.Estimate() || two.WorstCase() != one.WorstCase() {
		t.Errorf("with a skipped scenario %v, at worst %v; without it %v and %v", two.Estimate(), two.WorstCase(), one.Estimate(), one.WorstCase())
	}
	before, worst := one.Estimate(), one.WorstCase()
	one.Traffic = map[string]time.Duration{"a": 4 * time.Second}
	if got := one.Estimate() - before; got != 3*3*time.Second {
		t.Errorf("a tool that takes 4 s for a trial of 1 s makes 3 trials %v longer", got)
	}
	if one.WorstCase() <= worst {
		t.Error("the worst case does not know the tool")
	}
}

func TestTheEstimateIncludesTheBootOfVMs(t *testing.T) {
	plan := func(kind EndpointKind) *Plan {
		sc := Scenario{Endpoint: Endpoint{Kind: kind}, Timing: Timing{Duration: time.Second}}
		return &Plan{Trials: 3, Scenarios: []Scenario{sc, {Timing: Timing{Duration: time.Second}}}}
	}
	plain, booting := plan(Container), plan(VM)
	if got := booting.Estimate() - plain.Estimate(); got != 3*typicalBoot {
		t.Errorf("3 trials with VMs take %v longer; want %v", got, 3*typicalBoot)
	}
	// 3 trials, and half of the 9 repeats
	if got := booting.WorstCase() - plain.WorstCase(); got != 15*worstBoot/2 {
		t.Errorf("at worst VMs take %v longer; want %v", got, 15*worstBoot/2)
	}
}

func TestAPlanWithoutARunnableScenarioHasNoDuration(t *testing.T) {
	p := mustExpand(t, small, ExpandOptions{})
	p.Skipped = map[string]string{}
	for _, sc := range p.Scenarios {
		p.Skipped[sc.ID] = "netperf is not installed"
	}
	if first, _, _ := strings.Cut(Render(p), "\n"); first != "no scenario can run on this machine" {
		t.Errorf("the plan begins with %q", first)
	}
}
