package suite

import (
	"testing"
	"time"
)

func TestTheEstimateKnowsThatVMsBoot(t *testing.T) {
	plan := func(kind EndpointKind) *Plan {
		sc := Scenario{Endpoint: Endpoint{Kind: kind}, Timing: Timing{Duration: time.Second}}
		return &Plan{Trials: 3, Scenarios: []Scenario{sc, {Timing: Timing{Duration: time.Second}}}}
	}
	plain, booting := plan(Container), plan(VM)
	if got := booting.Estimate() - plain.Estimate(); got != 3*typicalBoot {
		t.Errorf("3 trials with VMs take %v longer; want %v", got, 3*typicalBoot)
	}
	blocks := time.Duration(plain.MostBlocks() * worstAttempts)
	if got := booting.WorstCase() - plain.WorstCase(); got != blocks*worstBoot {
		t.Errorf("at worst VMs take %v longer; want %v", got, blocks*worstBoot)
	}
}
