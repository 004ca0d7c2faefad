package model

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// Locators of 80 bits in one /64 do not overlap.
func TestLocatorsOf80BitsMayShareA64(t *testing.T) {
	s := wholeState()
	s.Nodes[0].Locator, s.Nodes[1].Locator = netip.MustParsePrefix("fd00:1:0:0:7::/80"), netip.MustParsePrefix("fd00:1:0:0:8::/80")
	must.Succeed(t, s.Validate())
}

func TestFreeLocatorSkipsUsedPrefixes(t *testing.T) {
	for _, c := range []struct {
		pool  string
		nodes []Node
		want  string
	}{
		{"fd00:77::/48", nil, "fd00:77:0:1::/64"},
		{"fd00:77::/48", []Node{{Locator: netip.MustParsePrefix("fd00:77:0:1::/64")}, {Locator: netip.MustParsePrefix("fd00:77:0:3::/64")}}, "fd00:77:0:2::/64"},
		{"fd00:77::/48", []Node{{Locator: netip.MustParsePrefix("fd00:77:0:1:5::/80")}}, "fd00:77:0:2::/64"},
		{"fd00:77::/48", []Node{{Underlay: addrs("fd00:77:0:1::9")}}, "fd00:77:0:2::/64"},
		{"fd00:77::/32", []Node{{Underlay: addrs("192.0.2.1")}}, "fd00:77:0:1::/64"},
		{"fd00:77:0:ff00::/56", []Node{{Locator: netip.MustParsePrefix("fd00:77:0:ff01::/64")}}, "fd00:77:0:ff02::/64"},
	} {
		s := State{Settings: Settings{Locators: netip.MustParsePrefix(c.pool)}, Nodes: c.nodes}
		if got, err := s.FreeLocator(nil); err != nil || got != netip.MustParsePrefix(c.want) {
			t.Errorf("pool %s, nodes %v: the locator is %s (%v), want %s", c.pool, c.nodes, got, err, c.want)
		}
	}
}

// A pool of 56 bits has 255 locators. Then, and without a pool, the error names the remedy.
func TestAPoolWithoutFreeLocatorsIsRefused(t *testing.T) {
	s := State{Settings: Settings{Locators: netip.MustParsePrefix("fd00:77::/56")}}
	for i := range 255 {
		l, err := s.FreeLocator(nil)
		if want := netip.MustParsePrefix(fmt.Sprintf("fd00:77:0:%x::/64", i+1)); err != nil || l != want {
			t.Fatalf("locator %d is %s (%v), want %s", i, l, err, want)
		}
		s.Nodes = append(s.Nodes, Node{Locator: l})
	}
	if l, err := s.FreeLocator(nil); err == nil || !strings.Contains(err.Error(), "all prefixes of 64 bits in the pool fd00:77::/56 are used; delete nodes") {
		t.Errorf("the 256th locator is %s (%v), want an error", l, err)
	}
	if l, err := (State{}).FreeLocator(nil); err == nil || !strings.Contains(err.Error(), "set settings.locators") {
		t.Errorf("without a pool, the locator is %s (%v), want an error", l, err)
	}
}
