package experiment

import (
	"testing"

	"windtunnel/lab/suite"
)

func TestTheProofIsSmallerOnSlowLinksAndInVMs(t *testing.T) {
	for _, c := range []struct {
		rate int64
		kind suite.EndpointKind
		want int
	}{
		{0, suite.Container, 10 << 20}, {5e6, suite.Container, 64 << 10}, {100e6, suite.Container, 625_000},
		{2.48e9, suite.Container, 10 << 20}, {0, suite.VM, 1 << 20}, {100e6, suite.VM, 625_000},
	} {
		sc := &suite.Scenario{Endpoint: suite.Endpoint{Kind: c.kind}, Fabric: suite.Fabric{Rate: c.rate}}
		if got := proofSize(sc); got != c.want {
			t.Errorf("at %d bit/s, %s: %d bytes, want %d", c.rate, c.kind, got, c.want)
		}
	}
}
