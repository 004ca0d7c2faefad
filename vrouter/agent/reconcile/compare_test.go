package reconcile

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// TestAChangeDuringAComparisonIsNotDrift changes ports while the maps are compared with the
// tables. The entries of the changes must not cause a pass that reads the maps again. An entry
// that somebody else deleted must still be repaired, although each comparison meets a change.
func TestAChangeDuringAComparisonIsNotDrift(t *testing.T) {
	t.Parallel()
	n := newFaulty(t)
	defer func() { n.Close() }()
	n.state.Ports = slices.DeleteFunc(slices.Clone(n.ports), func(p model.Port) bool { return p.Attach.Device != "" || p.Attach.Netns != "" && p.Name != "p0" })
	n.state.Nodes[1].Encapsulations = []model.Encapsulation{model.VXLAN} // so no link is tested, and only this test causes changes
	n.adopt(t)
	changes := 0
	change := func() {
		n.state.Ports = slices.Clone(n.state.Ports)
		p := &n.state.Ports[1+changes%(len(n.state.Ports)-1)]
		changes++
		p.IPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 7, 9, byte(changes)})}
		n.adopt(t)
	}
	// meet ends the comparison that is under way, as if it had read the maps after a change.
	meet := func() {
		t.Helper()
		d := <-n.Comparison.Done
		change()
		d.entries, d.err = n.Plane().Differs(d.tables.All())
		if len(d.entries) == 0 || d.err != nil {
			t.Fatalf("the comparison did not find the change: %v", d.err)
		}
		n.Compared(d)
	}
	for round := range 3 {
		n.Pass(Looking)
		for comparison := 1; n.Comparison.running; comparison++ {
			meet()
			if n.Last.cause != asked || comparison > 2 {
				t.Fatalf("round %d, comparison %d: pass because of %s, want none after a change", round, comparison, n.Last.cause)
			}
		}
	}
	for i, writes := range []bool{false, true} { // whether the pass that looks for drift writes a change too
		all := n.written.All()
		less := all
		less.Routes = maps.Clone(all.Routes)
		maps.DeleteFunc(less.Routes, func(k fib.RouteKey, _ layout.Route) bool { return k.Prefix == netip.MustParsePrefix("10.7.0.2/32") })
		must.Get(n.Plane().Update(all, less))(t)
		n.Silent = map[netip.Addr]bool{netip.MustParseAddr("172.31.0.2"): writes}
		n.Pass(Looking)
		begun, compared := n.Comparison.running, changes
		for n.Comparison.running {
			meet()
		}
		if n.Repairs != uint64(i+1) {
			t.Errorf("%d repairs, want %d; a comparison began: %v; comparisons: %d; cause of the last pass: %s", n.Repairs, i+1, begun, changes-compared, n.Last.cause)
		}
	}
	n.check(t)
}
