package e2e

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// TestTheUnitsCapabilitiesSuffice runs agents with the capabilities of the systemd unit:
// they start, test the link, send directly, take over from a killed agent and remove everything.
func TestTheUnitsCapabilitiesSuffice(t *testing.T) {
	t.Parallel()
	needs(t, "setpriv")
	unit, err := os.ReadFile("../../dist/systemd/vrouter.service")
	must.Succeed(t, err)
	_, rest, found := strings.Cut(string(unit), "\nCapabilityBoundingSet=")
	set, _, _ := strings.Cut(rest, "\n")
	if !found || set == "" {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	if _, families, _ := strings.Cut(string(unit), "\nRestrictAddressFamilies="); !slices.Contains(strings.Fields(families), "AF_PACKET") {
		t.Error("the unit does not allow packet sockets, which test the link")
	}
	b := newBed(t, options{})
	for _, n := range b.nodes {
		n.under = []string{"setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all," + strings.ToLower(strings.ReplaceAll("+"+strings.ReplaceAll(set, " ", ",+"), "CAP_", ""))}
	}
	x, y := directPair(b, model.L3, model.MPLSoUDP)
	checkTransfer(x, y, 4, 1<<20)
	a := b.nodes[0]
	a.kill(syscall.SIGKILL)
	a.start()
	checkTransfer(x, y, 6, 1<<20)
	if out, err := a.remove(); err != nil {
		t.Errorf("remove the node: %v: %s", err, out)
	}
}
