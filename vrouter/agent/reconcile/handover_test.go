package reconcile

import (
	"net/netip"
	"testing"

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
		state := []model.Node{{Name: "a"}, {Name: "b"}, {Name: "c", Locator: c.of}}
		handovers := map[string]fib.Handover{"b": {Accept: []model.Encapsulation{model.Translated}, Own: own, Other: other}}
		forgetMoved(handovers, state)
		f, want := &facts{handovers: handovers}, &Desired{}
		want.Node, want.State.Nodes = "a", state
		if nodes := f.nodes(want); nodes[0].Locator != c.a || nodes[1].Locator != c.b || nodes[2].Locator != c.of {
			t.Errorf("node c has %s: the nodes have the locators %s, %s and %s; want %s, %s and %s", c.what, nodes[0].Locator, nodes[1].Locator, nodes[2].Locator, c.a, c.b, c.of)
		}
	}
}
