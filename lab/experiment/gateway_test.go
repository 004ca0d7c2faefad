package experiment

import (
	"strings"
	"testing"

	"windtunnel/lab/probe"
	"windtunnel/lab/suite"
)

// Without the router's programs, the scenario is skipped, and the reason says how to install them.
func TestAGatewayIsSkippedWithoutItsPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, want := range map[string]string{
		"bridge-nat": "iptables is not installed", "vrouter-nat": "iptables is not installed", "vrouter-evpn": "vtysh is not installed; get it with: apt-get install frr",
	} {
		sc := scenario(name, func(sc *suite.Scenario) { sc.Placement = suite.Gateway })
		if why := skipsOn(planOf(sc), probe.Probe())[sc.ID]; !strings.Contains(why, want) {
			t.Errorf("%s is skipped because %q, want %q", name, why, want)
		}
	}
}
