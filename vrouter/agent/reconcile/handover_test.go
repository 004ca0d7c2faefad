package reconcile

import (
	"cmp"
	"net/netip"
	"os"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// A node keeps its former locator during a handover, but not if the locator moves to another
// node: then packets to it, and from it, would count as the former node's.
func TestAFormerLocatorThatAnotherNodeHasIsNotKept(t *testing.T) {
	p := netip.MustParsePrefix
	own, other := p("fd77:0:0:1::/64"), p("fd77:0:0:2::/64")
	for _, c := range []struct {
		what string
		of   netip.Prefix // locator of node c
		a, b netip.Prefix // then the locators of nodes a (this one) and b
	}{
		{"another locator", p("fd77:0:0:3::/64"), own, other},
		{"the other node's", other, own, netip.Prefix{}},
		{"a part of the other node's", p("fd77:0:0:2:5::/80"), own, netip.Prefix{}},
		{"this node's", own, netip.Prefix{}, other},
	} {
		for _, now := range [][2]netip.Prefix{{}, {p("fd78:0:0:1::/64"), p("fd78:0:0:2::/64")}} { // removed, or changed
			state := []model.Node{{Name: "a", Locator: now[0]}, {Name: "b", Locator: now[1]}, {Name: "c", Locator: c.of}}
			handovers := map[string]fib.Handover{"b": {Accept: []model.Encapsulation{model.Translated}, Own: own, Other: other}}
			forgetMoved(handovers, state, "a")
			f, want := &facts{handovers: handovers}, &Desired{}
			want.Node, want.State.Nodes = "a", state
			a, b := cmp.Or(c.a, now[0]), cmp.Or(c.b, now[1])
			if nodes := f.nodes(want); nodes[0].Locator != a || nodes[1].Locator != b || nodes[2].Locator != c.of {
				t.Errorf("node c has %s: the nodes have the locators %s, %s and %s; want %s, %s and %s", c.what, nodes[0].Locator, nodes[1].Locator, nodes[2].Locator, a, b, c.of)
			}
			pass := Pass{Want: want, facts: facts{handovers: handovers}} // tests of locators have the same addresses
			if self, far := pass.self().Locator, pass.other(state[1]).Locator; self != a || far != b {
				t.Errorf("node c has %s: the nodes' locators are tested at %s and %s, want %s and %s", c.what, self, far, a, b)
			}
		}
	}
}

// The handover of translated packets ends if a former locator overlaps a locator that a node has now,
// but not if a node has kept its locator.
func TestAMovedLocatorEndsTheHandover(t *testing.T) {
	p := netip.MustParsePrefix
	own, other := p("fd77:0:0:1::/64"), p("fd77:0:0:2::/64")
	for _, c := range []struct {
		what    string
		a, b, c netip.Prefix // locators now
		goes    bool         // the handover goes on
	}{
		{"both have other ones", p("fd78:0:0:1::/64"), p("fd78:0:0:2::/64"), netip.Prefix{}, true},
		{"this node's stays", own, p("fd78:0:0:2::/64"), netip.Prefix{}, true},
		{"the other node's stays", p("fd78:0:0:1::/64"), other, netip.Prefix{}, true},
		{"this node has a part of its former one", p("fd77:0:0:1:5::/80"), other, netip.Prefix{}, false},
		{"they exchange their locators", other, own, netip.Prefix{}, false},
		{"a third node has the former one", p("fd78:0:0:1::/64"), other, own, false},
	} {
		state := []model.Node{{Name: "a", Locator: c.a}, {Name: "b", Locator: c.b}, {Name: "c", Locator: c.c}}
		handovers := map[string]fib.Handover{"b": {Accept: []model.Encapsulation{model.Direct, model.Translated}, Own: own, Other: other}}
		forgetMoved(handovers, state, "a")
		if h := handovers["b"]; h.Accepts(model.Translated) != c.goes || !h.Accepts(model.Direct) {
			t.Errorf("%s: node a still accepts %v, want translated packets among them: %v", c.what, h.Accept, c.goes)
		}
	}
}

// If the handovers to other nodes have different former locators of this node, it keeps the same
// one in each pass.
func TestANodeKeepsOneFormerLocator(t *testing.T) {
	first, second := netip.MustParsePrefix("fd77:0:0:1::/64"), netip.MustParsePrefix("fd77:0:0:2::/64")
	handovers := map[string]fib.Handover{"b": {Own: second}, "c": {}, "d": {Own: first}, "e": {Own: second}}
	for range 100 {
		if own := formerOwn(handovers); own != first {
			t.Fatalf("the node keeps the locator %s, want %s", own, first)
		}
	}
}

// An agent that starts ignores the address of its former locator, which another node has now. It
// finds other addresses in the locator of the other node.
func TestAStartingAgentIgnoresItsFormerLocator(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to create network namespaces")
	}
	former := netip.MustParsePrefix("fd77:0:0:1::/64")
	s := agenttest.NewSpace(t, "locator")
	must.Succeed(t, netdev.KeepLocator(s, model.Node{Locator: former}, netip.Prefix{}))
	want := &Desired{}
	want.Node, want.State.Nodes = "a", []model.Node{{Name: "a", Locator: netip.MustParsePrefix("fd77:0:0:2::/64")}, {Name: "b", Locator: former}}
	r := &Reconciler{space: s}
	found := func() map[string]string { return (&Pass{r: r, Want: want}).foreignNow() }
	if f := found(); len(f) > 0 {
		t.Errorf("with the address of the former locator: %q, want no node", f)
	}
	agenttest.Addressed(t, s, "lo", "fd77:0:0:1::9/128")
	if f := found(); f["b"] == "" || len(f) > 1 {
		t.Errorf("with another address in the locator of node b: %q, want node b", f)
	}
}
