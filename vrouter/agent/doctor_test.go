package agent

import (
	"net/netip"
	"strings"
	"testing"

	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/model"
)

// The doctor lists the locators that cannot be reached with their lengths.
func TestTheDoctorListsLocatorsThatCannotBeReached(t *testing.T) {
	v := &view{want: &reconcile.Desired{Node: "a"}, links: map[netip.Addr]bool{}}
	for name, text := range map[string]string{"b": "fd77:0:0:2::/64", "c": "fd77:0:0:3:5::/80", "d": "fd77:0:0:3:6::/80"} {
		n := model.Node{Name: name, Locator: netip.MustParsePrefix(text)}
		v.want.Nodes = append(v.want.Nodes, n)
		v.links[n.LocatorAddress()] = name == "d"
	}
	found := ""
	for _, f := range directFindings(v) {
		found += f.Text + "\n"
	}
	for _, want := range []string{"the locators of 1 of 3 other nodes can be reached", "fd77:0:0:2::/64, fd77:0:0:3:5::/80;"} {
		if !strings.Contains(found, want) {
			t.Errorf("the findings lack %q:\n%s", want, found)
		}
	}
}
