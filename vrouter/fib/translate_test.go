package fib

import (
	"net/netip"
	"strings"
	"testing"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// Nodes without a common link translate IPv4 packets if both have locators. Other packets
// use the tunnel (the fallback), so routes have the label of the tunnel. The ports have the MTU of translated IPv4
// packets, which is larger than the tunnel's.
func TestNodesWithLocatorsTranslate(t *testing.T) {
	node := func(a, offers, locator string) model.Node {
		n := model.Node{Underlay: addrs(a), Encapsulations: encaps(offers)}
		if locator != "" {
			n.Locator = prefix(locator)
		}
		return n
	}
	for _, c := range []struct {
		what     string
		offers   string
		locator  string // of node b
		link     Link   // to the locator
		nexthop  string
		fallback string
		label    uint32
		mtu      uint16
		remote   bool // the tables have the locator as a remote
		accepts  bool // translated packets of the remote are accepted
		noWay    bool // no route over a fabric device leads to the locator
	}{
		{"locators", "d v", "fd77:0:0:2::/64", LinkWorks, "tunnel b translated", "tunnel b vxlan", 700, 1480, true, true, false},
		{"locators without a route", "d v", "fd77:0:0:2::/64", LinkWorks, "tunnel b vxlan", "", 700, 1450, true, true, true},
		{"locators under test", "d v", "fd77:0:0:2::/64", LinkUntested, "tunnel b vxlan", "", 700, 1480, true, true, false},
		{"locators that fail", "d v", "fd77:0:0:2::/64", LinkFails, "tunnel b vxlan", "", 700, 1450, true, true, false},
		{"a node without locator", "d v", "", LinkWorks, "tunnel b vxlan", "", 700, 1450, false, false, false},
		{"nodes that do not offer direct", "v u", "fd77:0:0:2::/64", LinkWorks, "tunnel b vxlan", "", 700, 1450, true, false, false},
		{"nodes that offer direct alone", "d", "fd77:0:0:2::/64", LinkWorks, "tunnel b translated", "", 7, 1480, true, true, false},
	} {
		asked := netip.Addr{}
		tables, warnings := compiled(t, pairOf(node("192.0.2.1", c.offers, "fd77:0:0:1::/64"), node("198.51.100.2", c.offers, c.locator), model.L3), func(f *Facts) {
			f.Link = func(a netip.Addr, _ uint32) Link {
				if a.Is4() {
					return NoLink
				}
				asked = a
				return c.link
			}
			f.Way = func(source, destination netip.Addr) ([]layout.Path, int) {
				gateway := netip.MustParseAddr("192.0.2.254")
				if destination.Is6() && c.noWay {
					return nil, 0
				}
				if destination.Is6() {
					gateway = netip.MustParseAddr("fe80::1")
				}
				return []layout.Path{layout.PathOf(source, destination, gateway, 2)}, 1500
			}
		})
		id, n := tables.named(c.nexthop)
		fallback, _ := tables.named(c.fallback)
		if r := tables.Routes[RouteKey{VRF: 7, Prefix: prefix("10.1.0.3/32")}]; id == 0 || r.Nexthop != id || r.Label != c.label || n.Fallback != fallback || len(warnings) > 0 {
			t.Errorf("%s: the route is %+v and its fallback %d, want label %d and nexthop %d (%s) with fallback %d; nexthops %v, warnings %v", c.what, r, n.Fallback, c.label, id, c.nexthop, fallback, tables.names(), warnings)
		}
		if n.Encapsulation() == model.Translated {
			want := layout.PathOf(netip.MustParseAddr("fd77:0:0:1::"), netip.MustParseAddr("fd77:0:0:2::"), netip.MustParseAddr("fe80::1"), 2)
			want.Locators = Locators64
			if len(n.Ways()) != 1 || n.Path[0] != want || n.MTU != 1480 {
				t.Errorf("%s: the nexthop has MTU %d and paths %v, want 1480 and %v", c.what, n.MTU, n.Ways(), want)
			}
		}
		for _, v := range tables.Vifs {
			if v.MTU != c.mtu {
				t.Errorf("%s: the vif's MTU is %d, want %d", c.what, v.MTU, c.mtu)
			}
		}
		r, isRemote := tables.Remotes[layout.AddressOf(netip.MustParseAddr("fd77:0:0:2::"))]
		if isRemote != c.remote || r.Accepts(model.Translated) != c.accepts || c.remote && r.ID == 0 {
			t.Errorf("%s: the remote of the locator is %+v (exists: %v), want exists %v and accepts %v", c.what, r, isRemote, c.remote, c.accepts)
		}
		if c.accepts && !c.noWay && asked != netip.MustParseAddr("fd77:0:0:2::1") {
			t.Errorf("%s: the compiler asked for the test of address %s, want fd77:0:0:2::1", c.what, asked)
		}
	}
}

// Two nodes agree which of them has the adjustment in its addresses. A sender's nexthop and the
// receiver's remote have the same case, seen from their own nodes.
func TestTwoNodesAgreeOnTheAdjustment(t *testing.T) {
	for _, c := range []struct {
		own, other string
		want, back uint8 // of this node, and of the other node
	}{
		{"fd77:0:0:1::/64", "fd77:0:0:2::/64", Locators64, Locators64},
		{"fd77:0:0:1::/64", "fd77:0:0:2:2::/80", Locators64To80, Locators80To64},
		{"fd77:0:0:1:1::/80", "fd77:0:0:1:2::/80", Locators80Adjustment, Locators80Network},
		{"fd77:0:0:2:1::/80", "fd77:0:0:1:2::/80", Locators80Network, Locators80Adjustment},
	} {
		own, other := prefix(c.own), prefix(c.other)
		if got, back := LocatorsOf(own, other), LocatorsOf(other, own); got != c.want || back != c.back {
			t.Errorf("%s and %s: %d and %d, want %d and %d", own, other, got, back, c.want, c.back)
		}
		a := model.Node{Underlay: addrs("192.0.2.1"), Encapsulations: encaps("d v"), Locator: own}
		b := model.Node{Underlay: addrs("198.51.100.2"), Encapsulations: encaps("d v"), Locator: other}
		tables, _ := compiled(t, pairOf(a, b, model.L3), func(f *Facts) {
			f.Link = func(a netip.Addr, _ uint32) Link {
				return map[bool]Link{true: NoLink, false: LinkWorks}[a.Is4()]
			}
		})
		_, n := tables.named("tunnel b translated")
		settings := tables.Settings
		settings.SetLocator(own)
		if r := tables.Remotes[layout.AddressOf(other.Addr())]; r.Locators != c.want || len(n.Ways()) != 1 || n.Path[0].Locators != c.want || tables.Settings != settings {
			t.Errorf("%s and %s: the remote is %+v, the paths are %v and the settings %+v; want the case %d", own, other, r, n.Ways(), tables.Settings, c.want)
		}
	}
}

// The first 96 bits of the first IPv6 subnet are the same on all nodes. The node's ports do not
// change them.
func TestTheFirstIPv6SubnetGivesThePrefixOfTranslatedAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.0.0/16":                           "::",
		"10.1.0.0/16 fd00:1::/64 fd00:2::/64":   "fd00:1::",
		"fd00:2:0:0:ff00::/72 10.1.0.0/16":      "fd00:2:0:0:ff00::",
		"fd00:3::7:8000:0/97 10.1.0.0/16":       "fd00:3::7:0:0",
		"10.1.0.0/16 fd00:4:0:0:1:2:3:ff00/120": "fd00:4::1:2:0:0",
	} {
		s := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}, model.L3)
		s.Networks[0].Subnets = nil
		for _, p := range strings.Fields(text) {
			s.Networks[0].Subnets = append(s.Networks[0].Subnets, prefix(p))
		}
		tables, _ := compiled(t, s, nil)
		got := tables.VRFs[7].Prefix6
		if got != layout.Words96(netip.MustParseAddr(want)) {
			t.Errorf("subnets %s: the prefix is %x, want %s", text, got, want)
		}
	}
}
