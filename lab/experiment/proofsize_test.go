package experiment

import (
	"testing"
	"time"

	"windtunnel/lab/suite"
)

func TestTheProofIsSmallerOnSlowAndLongLinksAndInVMs(t *testing.T) {
	for _, c := range []struct {
		rate  int64
		delay time.Duration
		kind  suite.EndpointKind
		want  int
		wait  time.Duration
	}{
		{0, 0, suite.Container, 10 << 20, 10 * time.Second}, {5e6, 0, suite.Container, 64 << 10, 10209715200}, {100e6, 0, suite.Container, 625_000, 10100 * time.Millisecond},
		{2.48e9, 0, suite.Container, 10 << 20, 10067650064}, {0, 0, suite.VM, 1 << 20, 10 * time.Second}, {100e6, 0, suite.VM, 625_000, 10100 * time.Millisecond},
		{0, time.Millisecond, suite.Container, 10 << 20, 10030 * time.Millisecond}, {0, time.Second, suite.Container, 64 << 10, 40 * time.Second},
		{16e3, 0, suite.Container, 64 << 10, 75536 * time.Millisecond},
	} {
		sc := &suite.Scenario{Endpoint: suite.Endpoint{Kind: c.kind}, Fabric: suite.Fabric{Rate: c.rate, Delay: c.delay}}
		if got := proofSize(sc); got != c.want || proofWait(sc, got) != c.wait {
			t.Errorf("at %d bit/s, delay %v, %s: %d bytes in %v, want %d in %v", c.rate, c.delay, c.kind, got, proofWait(sc, got), c.want, c.wait)
		}
	}
}
