package system

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"windtunnel/internal/must"
)

// Nodes on one link translate only if vrouter cannot write labels as MAC addresses.
// So their underlay addresses must be IPv6. Each node needs a locator.
func TestNodesThatTranslateHaveLocators(t *testing.T) {
	v := must.Get(ByName("vrouter-translated"))(t)
	n := &Node{Name: "wt-t-a", Underlay: []netip.Addr{netip.MustParseAddr("172.30.0.1"), netip.MustParseAddr("172.30.0.2")}}
	locators := map[netip.Prefix]bool{}
	for _, node := range v.(VRouter).state(n).Nodes {
		if len(node.Underlay) != 1 || !node.Underlay[0].Is6() || node.Locator.Contains(node.Underlay[0]) {
			t.Errorf("node %s has underlay %v and locator %s, want an IPv6 address outside the locator", node.Name, node.Underlay, node.Locator)
		}
		if !slices.Equal(node.Encapsulations, []string{"direct", "vxlan"}) || node.Locator.Bits() != 64 || locators[node.Locator] {
			t.Errorf("node %s offers %v and has locator %s, want direct and vxlan, and a locator that no other node has", node.Name, node.Encapsulations, node.Locator)
		}
		locators[node.Locator] = true
	}
	must.Equal(t, 2, len(locators))
}

func TestTranslationLengthensPacketsByLessThanTheMTUReserves(t *testing.T) {
	for name, want := range map[string]map[int]int{"vrouter-translated": {4: 20, 6: 0}, "vrouter-vxlan": nil, "bridge": nil} {
		s := must.Get(ByName(name))(t)
		if got := s.About().AddedBytes; !maps.Equal(got, want) {
			t.Errorf("%s adds these bytes to packets, by IP version: %v, want %v", name, got, want)
		}
	}
}
