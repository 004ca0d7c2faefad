package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"windtunnel/vrouter/model"
)

// TestTheUnitsCapabilitiesSuffice runs agents with the capabilities of the systemd unit:
// they start, forward, take over from a killed agent and remove everything.
func TestTheUnitsCapabilitiesSuffice(t *testing.T) {
	t.Parallel()
	needs(t, "setpriv")
	unit, err := os.ReadFile("../../dist/systemd/vrouter.service")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(unit), "\nCapabilityBoundingSet=")
	set, _, _ := strings.Cut(rest, "\n")
	if !found || set == "" {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	b := newBed(t, options{})
	for _, n := range b.nodes {
		n.under = []string{"setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all," + strings.ToLower(strings.ReplaceAll("+"+strings.ReplaceAll(set, " ", ",+"), "CAP_", ""))}
	}
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	if err := transfer(x, y, 4, 1<<20); err != nil {
		t.Error(err)
	}
	a := b.nodes[0]
	a.kill(syscall.SIGKILL)
	a.start()
	if err := transfer(x, y, 6, 1<<20); err != nil {
		t.Error(err)
	}
	if out, err := a.remove(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
