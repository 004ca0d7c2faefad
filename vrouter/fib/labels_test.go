package fib

import (
	"net/netip"
	"strings"
	"testing"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// Packets of a network whose label the other node does not receive use the next encapsulation.
// The other networks use direct.
func TestNetworksAboveTheLastLabelUseTheNextEncapsulation(t *testing.T) {
	node := func(a, offers, locator string) model.Node {
		return model.Node{Underlay: addrs(a), Encapsulations: encaps(offers), Locator: prefix(locator)}
	}
	for _, c := range []struct {
		what       string
		offers     string
		forwarding model.Forwarding
		link       Link
		locator    Link
		last       uint32
		red, blue  string // nexthops of routes; empty: no route
		mtu        uint16 // of blue's port
		warning    string
	}{
		{"all labels", "d v", model.L3, LinkWorks, LinkFails, 9, "direct", "direct", 9000, ""},
		{"one label", "d v", model.L3, LinkWorks, LinkFails, 7, "direct", "vxlan", 8950, ""},
		{"one label of networks that bridge", "d v", model.L2L3, LinkBridges, LinkFails, 7, "direct", "vxlan", 8950, ""},
		{"one label and MPLS", "d u", model.L2L3, LinkBridges, LinkFails, 7, "direct", "mpls-udp", 8954, ""},
		{"one label and locators", "d v", model.L3, LinkWorks, LinkWorks, 7, "direct", "translated", 8980, ""},
		{"one label, the link under test", "d v", model.L3, LinkUntested, LinkFails, 7, "vxlan", "vxlan", 8950, ""},
		{"one label, the link under test, and locators", "d v", model.L3, LinkUntested, LinkWorks, 7, "translated", "translated", 8980, ""},
		{"one label, a link that fails", "d v", model.L3, LinkFails, LinkFails, 7, "vxlan", "vxlan", 8950, ""},
		{"one label, and direct alone", "d", model.L3, LinkWorks, LinkFails, 7, "direct", "", 8980, "networks whose id is above 7"},
		{"one label, direct alone, and locators", "d", model.L3, LinkWorks, LinkWorks, 7, "direct", "translated", 8980, ""},
	} {
		s := pairOf(node("192.0.2.1", c.offers, "fd77:0:0:1::/64"), node("192.0.2.2", c.offers, "fd77:0:0:2::/64"), c.forwarding)
		s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 8, Subnets: []netip.Prefix{prefix("10.2.0.0/16")}, Forwarding: c.forwarding, VNI: 800})
		s.Ports = append(s.Ports,
			model.Port{Name: "qa", Network: "blue", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 3}, IPs: addrs("10.2.0.2")},
			model.Port{Name: "qb", Network: "blue", Node: "b", MAC: model.MAC{2, 0, 0, 0, 0, 4}, IPs: addrs("10.2.0.3")})
		tables, warnings := compiled(t, s, func(f *Facts) {
			f.LastLabel = 5
			f.LabelsOf = func(a netip.Addr) uint32 {
				if a != netip.MustParseAddr("192.0.2.2") {
					t.Errorf("%s: the labels of address %s were asked for, want those of node b's", c.what, a)
				}
				return c.last
			}
			f.Link = func(a netip.Addr, _ uint32) Link {
				if a.Is4() {
					return c.link
				}
				return c.locator
			}
			f.Way = func(source, destination netip.Addr) ([]layout.Path, int) {
				return []layout.Path{layout.PathOf(source, destination, destination, 2)}, 9000
			}
		})
		if tables.Settings.LastLabel != layout.Network16(5) {
			t.Errorf("%s: the settings have the last label %d, want this node's: 5", c.what, tables.Settings.LastLabel)
		}
		for key, want := range map[RouteKey]string{{VRF: 7, Prefix: prefix("10.1.0.3/32")}: c.red, {VRF: 8, Prefix: prefix("10.2.0.3/32")}: c.blue} {
			r, has := tables.Routes[key]
			if got := tables.Nexthops[r.Nexthop].Encapsulation(); has != (want != "") || string(got) != want {
				t.Errorf("%s: the route of VRF %d is %+v by %q, want %q; nexthops %v", c.what, key.VRF, r, got, want, tables.names())
			}
			if want == "direct" && r.Label != key.VRF || want == "vxlan" && r.Label != 100*key.VRF {
				t.Errorf("%s: the label of the route of VRF %d is %d", c.what, key.VRF, r.Label)
			}
		}
		if c.forwarding != model.L3 {
			e := tables.Bridge[layout.BridgeKey{VRF: 8, MAC: model.MAC{2, 0, 0, 0, 0, 4}}]
			if n := tables.Nexthops[e.Nexthop]; string(n.Encapsulation()) != c.blue {
				t.Errorf("%s: blue's frames use %+v, want %s", c.what, n, c.blue)
			}
			for _, m := range tables.MembersOf(tables.VRFs[8].Flood) {
				if n := tables.Nexthops[m.Nexthop]; n.Type == layout.Tunnel && string(n.Encapsulation()) != c.blue {
					t.Errorf("%s: blue's broadcast uses %+v, want %s", c.what, n, c.blue)
				}
			}
		}
		for _, v := range tables.Vifs {
			if v.VRF == 8 && v.MTU != c.mtu {
				t.Errorf("%s: the MTU of blue's port is %d, want %d", c.what, v.MTU, c.mtu)
			}
		}
		if text := strings.Join(warnings, "; "); (text != "") != (c.warning != "") || !strings.Contains(text, c.warning) {
			t.Errorf("%s: the warnings are %q, want one with %q", c.what, text, c.warning)
		}
		// A learned MTU belongs to nexthops with outer headers.
		r := tables.Remotes[layout.AddressOf(netip.MustParseAddr("192.0.2.2"))]
		if tunnel, n := tables.named("tunnel b " + c.blue); tunnel != 0 && n.Encapsulation() != model.Direct && n.Encapsulation() != model.Translated && r.Nexthop != tunnel {
			t.Errorf("%s: the remote is %+v, want nexthop %d (%s)", c.what, r, tunnel, n.Name)
		}
	}
}
