package fib

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

func addrs(texts ...string) (all []netip.Addr) {
	for _, t := range texts {
		all = append(all, netip.MustParseAddr(t))
	}
	return all
}

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// encaps returns the encapsulations for the letters of text: d is Direct, u is MPLSoUDP,
// g is MPLSoGRE, v is VXLAN.
func encaps(text string) (all []model.Encapsulation) {
	for _, e := range strings.Fields(text) {
		all = append(all, map[string]model.Encapsulation{"d": model.Direct, "u": model.MPLSoUDP, "g": model.MPLSoGRE, "v": model.VXLAN}[e])
	}
	return all
}

func TestPairsOfNodesChooseTheEncapsulationThatBothRankHighest(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want model.Encapsulation
	}{
		{"u g v", "u g v", model.MPLSoUDP},
		{"v", "u g v", model.VXLAN},
		{"u g v", "g", model.MPLSoGRE},
		{"u v g", "g v u", model.MPLSoUDP}, // all sums are 2: a's first
		{"g v u", "u v g", model.MPLSoGRE}, // again
		{"u g", "g u", model.MPLSoUDP},     // both sums are 1
		{"u v", "v g u", model.VXLAN},      // 1 against 2
		{"g u v", "v u g", model.MPLSoGRE}, // 2 each
		{"u g v", "v g", model.MPLSoGRE},   // 2 each; the one that a ranks higher
		{"v u g", "g u v", model.VXLAN},    // 2 each
		{"g v", "v g u", model.MPLSoGRE},   // 1 each
		{"u", "g v", ""}, {"", "u g v", ""}, {"", "", ""},
	} {
		a := model.Node{Name: "a", Encapsulations: encaps(c.a)}
		b := model.Node{Name: "b", Encapsulations: encaps(c.b)}
		forward, back := commonEncapsulations(a, b), commonEncapsulations(b, a)
		if !slices.Equal(forward, back) {
			t.Errorf("a offers %q and b offers %q: a chooses %q, b chooses %q", c.a, c.b, forward, back)
		}
		if best := append(forward, "")[0]; best != c.want {
			t.Errorf("a offers %q and b offers %q: the best is %q, want %q", c.a, c.b, best, c.want)
		}
	}
}

func TestDirectIsChosenWhereTheLinkWorks(t *testing.T) {
	for _, c := range []struct {
		common  string
		recent  int
		link    Link
		locator Link
		want    formats
		none    bool
	}{
		{common: "d v u", link: LinkWorks, want: formats{encap: model.Direct, frames: model.VXLAN}},
		{common: "d v u", link: LinkUntested, want: formats{encap: model.VXLAN, frames: model.VXLAN, later: true}},
		{common: "d v u", link: LinkFails, want: formats{encap: model.VXLAN, frames: model.VXLAN}},
		{common: "d v u", link: NoLink, want: formats{encap: model.VXLAN, frames: model.VXLAN}},
		{common: "u d", link: LinkWorks, want: formats{encap: model.MPLSoUDP, frames: model.MPLSoUDP}},
		{common: "d", link: LinkWorks, want: formats{encap: model.Direct}},
		{common: "d", link: LinkUntested, want: formats{encap: model.Direct}},
		{common: "d", link: LinkFails, want: formats{encap: model.Direct}},
		{common: "d", link: NoLink, none: true},
		{common: "d v", link: LinkWorks, locator: LinkWorks, want: formats{encap: model.Direct, frames: model.VXLAN}},
		{common: "d v u", link: LinkBridges, want: formats{encap: model.Direct, frames: model.VXLAN, bridges: true}},
		{common: "v d", link: LinkBridges, want: formats{encap: model.VXLAN, frames: model.VXLAN}},
		{common: "d", link: LinkBridges, want: formats{encap: model.Direct}},
		{common: "d v", link: LinkFails, locator: LinkWorks, want: formats{encap: model.VXLAN, frames: model.VXLAN, translates: true}},
		{common: "d v", link: LinkUntested, locator: LinkWorks, want: formats{encap: model.VXLAN, frames: model.VXLAN, translates: true, later: true}},
		{common: "d v", locator: LinkWorks, want: formats{encap: model.VXLAN, frames: model.VXLAN, translates: true}},
		{common: "d v", locator: LinkUntested, want: formats{encap: model.VXLAN, frames: model.VXLAN, awaited: true}},
		{common: "d v", locator: LinkFails, want: formats{encap: model.VXLAN, frames: model.VXLAN}},
		{common: "v d", locator: LinkWorks, want: formats{encap: model.VXLAN, frames: model.VXLAN}},
		{common: "d", locator: LinkWorks, want: formats{encap: model.Translated, translates: true}},
		{common: "d", locator: LinkUntested, want: formats{encap: model.Translated, translates: true}},
		{common: "d", locator: LinkFails, none: true},
		{common: "d", link: LinkFails, locator: LinkFails, want: formats{encap: model.Direct}},
		{common: "d", link: LinkFails, locator: LinkWorks, want: formats{encap: model.Translated, translates: true}},
		{common: "d v", recent: 1, link: LinkUntested, want: formats{encap: model.Direct, frames: model.VXLAN}},
		{common: "d v", recent: 1, locator: LinkUntested, want: formats{encap: model.VXLAN, frames: model.VXLAN, translates: true}},
		{common: "d v", recent: 1, link: LinkFails, want: formats{encap: model.VXLAN, frames: model.VXLAN}},
		{common: "d v u", recent: 1, link: LinkUntested, want: formats{encap: model.VXLAN, frames: model.VXLAN, later: true}},
	} {
		got, ok := choose(encaps(c.common), c.recent, c.link, c.locator)
		if ok == c.none || got != c.want {
			t.Errorf("choose(%q, %d recent, link %d, locator %d) returns %+v, %v; want %+v, %v", c.common, c.recent, c.link, c.locator, got, ok, c.want, !c.none)
		}
	}
}

// Direct is used only on a common Ethernet link. Its packets have no tunnel headers, so
// the MTU of ports is the underlay's. Ethernet frames still need a tunnel, at least for frames
// that the other node cannot restore.
func TestDirectUsesTheWholeMTU(t *testing.T) {
	node := func(a string) model.Node { return model.Node{Underlay: addrs(a), Encapsulations: encaps("d v")} }
	for _, c := range []struct {
		what       string
		forwarding model.Forwarding
		link       Link
		gateway    string
		oif        uint32
		nexthop    string
		label      uint32
		mtu        uint16
		adds       string // result of Encapsulating
	}{
		{"a link", model.L3, LinkWorks, "192.0.2.2", 2, "tunnel b direct", 7, 9000, ""},
		{"a link under test", model.L3, LinkUntested, "192.0.2.2", 2, "tunnel b vxlan", 700, 9000, "tunnel b vxlan"},
		{"a link that fails", model.L3, LinkFails, "192.0.2.2", 2, "tunnel b vxlan", 700, 8950, "tunnel b vxlan"},
		{"no link", model.L3, NoLink, "192.0.2.2", 2, "tunnel b vxlan", 700, 8950, "tunnel b vxlan"},
		{"a route by a gateway", model.L3, LinkWorks, "192.0.2.9", 2, "tunnel b vxlan", 700, 8950, "tunnel b vxlan"},
		{"another device than the tested one", model.L3, LinkWorks, "192.0.2.2", 3, "tunnel b vxlan", 700, 8950, "tunnel b vxlan"},
		{"a network that bridges", model.L2L3, LinkWorks, "192.0.2.2", 2, "tunnel b direct", 7, 8950, "tunnel b vxlan"},
		{"a node that restores frames", model.L2L3, LinkBridges, "192.0.2.2", 2, "tunnel b direct", 7, 8950, ""},
	} {
		tables, warnings := compiled(t, pairOf(node("192.0.2.1"), node("192.0.2.2"), c.forwarding), func(f *Facts) {
			f.Link = func(_ netip.Addr, oif uint32) Link {
				if oif == 3 {
					return NoLink // another device was tested
				}
				return c.link
			}
			f.Way = func(source, destination netip.Addr) ([]layout.Path, int) {
				return []layout.Path{layout.PathOf(source, destination, netip.MustParseAddr(c.gateway), c.oif)}, 9000
			}
		})
		id, _ := tables.named(c.nexthop)
		r := tables.Routes[RouteKey{VRF: 7, Prefix: prefix("10.1.0.3/32")}]
		if id == 0 || r.Nexthop != id || r.Label != c.label || len(warnings) > 0 {
			t.Errorf("%s: the route is %+v, want label %d and nexthop %d (%s); nexthops %v, warnings %v", c.what, r, c.label, id, c.nexthop, tables.names(), warnings)
		}
		must.Equal(t, c.adds, tables.Encapsulating())
		for _, v := range tables.Vifs {
			// While the link is tested, the ports already have the MTU of direct. So their
			// MTU does not change when the test succeeds.
			if v.MTU != c.mtu {
				t.Errorf("%s: the vif's MTU is %d, want %d", c.what, v.MTU, c.mtu)
			}
		}
		if e := tables.Bridge[layout.BridgeKey{VRF: 7, MAC: model.MAC{2, 0, 0, 0, 0, 2}}]; c.forwarding == model.L2L3 {
			tunnel, _ := tables.named("tunnel b vxlan")
			want := tunnel
			if c.link == LinkBridges {
				var n nexthop
				if want, n = tables.named("tunnel b direct ethernet"); n.Encapsulation() != model.Direct || n.Fallback != tunnel || n.MTU != 8950 || n.Flags&layout.NexthopDF != 0 {
					t.Errorf("%s: the nexthop of frames is %+v, want direct with the MTU of its fallback %d (VXLAN)", c.what, n, tunnel)
				}
			}
			if e.Nexthop != want || e.Label != 700 {
				t.Errorf("%s: Ethernet frames use %+v, want label 700 and nexthop %d", c.what, e, want)
			}
			if flood := tables.MembersOf(tables.VRFs[7].Flood); !slices.Contains(flood, layout.Member{Nexthop: want, Label: 700}) {
				t.Errorf("%s: broadcast goes to %+v, want a copy by nexthop %d, whose programs use the fallback", c.what, flood, want)
			}
		}
	}
}

// pairOf is a fleet of two nodes with a port each in one network.
func pairOf(a, b model.Node, forwarding model.Forwarding) model.State {
	a.Name, b.Name = "a", "b"
	return model.State{
		Nodes:    []model.Node{a, b},
		Networks: []model.Network{{Name: "red", ID: 7, Subnets: []netip.Prefix{prefix("10.1.0.0/16")}, Forwarding: forwarding, VNI: 700}},
		Ports: []model.Port{
			{Name: "pa", Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 1}, IPs: addrs("10.1.0.2")},
			{Name: "pb", Network: "red", Node: "b", MAC: model.MAC{2, 0, 0, 0, 0, 2}, IPs: addrs("10.1.0.3")},
		},
	}
}

// withTunnels gives MPLSoUDP, MPLSoGRE and VXLAN to the nodes that have no encapsulations.
func withTunnels(s model.State) model.State {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if s.Nodes[i].Encapsulations == nil {
			s.Nodes[i].Encapsulations = encaps("u g v")
		}
	}
	return s
}

// compiled are node a's tables, with every port plugged.
func compiled(t *testing.T, s model.State, change func(*Facts)) (Tables, []string) {
	t.Helper()
	s = withTunnels(s).WithDefaults()
	f := factsFor(s, "a", nil)
	if change != nil {
		change(&f)
	}
	tables, warnings, err := compile(s, "a", f, &IDs{})
	must.Succeed(t, err)
	return tables, warnings
}

// named is the nexthop of a name.
func (t Tables) named(name string) (uint32, nexthop) {
	for id, n := range t.Names {
		if n == name {
			return id, t.nexthop(id)
		}
	}
	return 0, nexthop{}
}

func (t Tables) names() []string {
	return slices.Sorted(maps.Values(t.Names))
}

func ends(paths []layout.Path) (all []string) {
	for _, p := range paths {
		all = append(all, p.Source.Addr().String()+">"+p.Destination.Addr().String())
	}
	return all
}

func TestUnderlayPathsAreOfOneFamilyAndParallel(t *testing.T) {
	for _, c := range []struct {
		what, a, b string
		want       []string
	}{
		{"IPv4 where both have it", "192.0.2.1 2001:db8::1", "2001:db8::2 192.0.2.2", []string{"192.0.2.1>192.0.2.2"}},
		{"IPv6 where one has no IPv4", "192.0.2.1 2001:db8::1", "2001:db8::2", []string{"2001:db8::1>2001:db8::2"}},
		{"the same place in both lists", "192.0.2.1 192.0.3.1", "192.0.2.2 192.0.3.2", []string{"192.0.2.1>192.0.2.2", "192.0.3.1>192.0.3.2"}},
		{"places count by family", "2001:db8::1 192.0.2.1 192.0.3.1", "192.0.2.2 2001:db8::2 192.0.3.2", []string{"192.0.2.1>192.0.2.2", "192.0.3.1>192.0.3.2"}},
		{"what is beyond the other's list rests", "192.0.2.1 192.0.3.1 192.0.4.1", "192.0.2.2", []string{"192.0.2.1>192.0.2.2"}},
		{"four at most", "192.0.1.1 192.0.2.1 192.0.3.1 192.0.4.1", "192.0.1.2 192.0.2.2 192.0.3.2 192.0.4.2", []string{"192.0.1.1>192.0.1.2", "192.0.2.1>192.0.2.2", "192.0.3.1>192.0.3.2", "192.0.4.1>192.0.4.2"}},
	} {
		s := pairOf(model.Node{Underlay: addrs(strings.Fields(c.a)...)}, model.Node{Underlay: addrs(strings.Fields(c.b)...)}, model.L3)
		tables, warnings := compiled(t, s, nil)
		id, n := tables.named("tunnel b mpls-udp")
		if got := ends(n.Ways()); !slices.Equal(got, c.want) || len(warnings) > 0 {
			t.Errorf("%s: %v, want %v; warnings %v", c.what, got, c.want, warnings)
		}
		for _, a := range s.Nodes[1].Underlay {
			if tables.Remotes[layout.AddressOf(a)].Nexthop != id {
				t.Errorf("%s: remote %s leads to nexthop %d, the tunnel is %d", c.what, a, tables.Remotes[layout.AddressOf(a)].Nexthop, id)
			}
		}
		if df := n.Flags&layout.NexthopDF != 0; df == n.Path[0].Destination.Addr().Is6() {
			t.Errorf("%s: DF is %v", c.what, df)
		}
	}
}

// An underlay with several routes of its own gives each pair several paths.
func TestEveryPairHasAPathBeforeAnyHasTwo(t *testing.T) {
	s := pairOf(model.Node{Underlay: addrs("192.0.2.1", "192.0.3.1")}, model.Node{Underlay: addrs("192.0.2.2", "192.0.3.2")}, model.L3)
	tables, _ := compiled(t, s, func(f *Facts) {
		f.Way = func(source, destination netip.Addr) (paths []layout.Path, mtu int) {
			for oif := range uint32(3) {
				paths = append(paths, layout.PathOf(source, destination, netip.Addr{}, 10+oif))
			}
			return paths, map[string]int{"192.0.2.1": 1500, "192.0.3.1": 1400}[source.String()]
		}
	})
	_, n := tables.named("tunnel b mpls-udp")
	var got []string
	for _, p := range n.Ways() {
		got = append(got, fmt.Sprint(p.Source.Addr(), " ", p.Oif))
	}
	must.Equal(t, []string{"192.0.2.1 10", "192.0.3.1 10", "192.0.2.1 11", "192.0.3.1 11"}, got)
	if n.MTU != 1400-32 {
		t.Errorf("inner packets may have %d bytes, want the smaller way's 1400 less 32", n.MTU)
	}
}

func TestGatewaysAddressesAreAllPaths(t *testing.T) {
	s := pairOf(model.Node{Underlay: addrs("192.0.2.1", "192.0.3.1")}, model.Node{Underlay: addrs("192.0.2.2")}, model.L3)
	s.Gateways = []model.Gateway{{
		Name: "mx", Addresses: addrs("192.0.2.9", "192.0.2.10", "192.0.2.11", "2001:db8::9"), Encapsulation: model.MPLSoGRE,
		Networks: []model.GatewayNetwork{{Network: "red", Label: 100, Prefixes: []netip.Prefix{prefix("0.0.0.0/0")}}},
	}}
	tables, _ := compiled(t, s, nil)
	id, n := tables.named("tunnel gateway mx mpls-gre")
	if got, want := ends(n.Ways()), []string{"192.0.2.1>192.0.2.9", "192.0.3.1>192.0.2.10", "192.0.2.1>192.0.2.11"}; !slices.Equal(got, want) {
		t.Errorf("the paths are %v, want %v", got, want)
	}
	if r := tables.Routes[RouteKey{7, prefix("0.0.0.0/0")}]; r.Nexthop != id || r.Label != 100 {
		t.Errorf("the default route is %+v, want nexthop %d with label 100", r, id)
	}
}

func TestAGatewayWithoutRoutesMaySendAndHasNoNexthop(t *testing.T) {
	s := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}, model.L2L3)
	s.Gateways = []model.Gateway{{
		Name: "mx", Addresses: addrs("192.0.2.9"), Encapsulation: model.MPLSoGRE,
		Networks: []model.GatewayNetwork{{Network: "red", Label: 100, EthernetLabel: 101}},
	}}
	gn := &s.Gateways[0].Networks[0]
	for _, c := range []struct {
		what   string
		change func()
		want   []string
	}{
		{"nothing", func() {}, nil},
		{"flood", func() { gn.Flood = true }, []string{"tunnel gateway mx mpls-gre ethernet"}},
		{"a MAC", func() { gn.Flood, gn.MACs = false, []model.MAC{{6, 0, 0, 0, 0, 1}} }, []string{"tunnel gateway mx mpls-gre ethernet"}},
		{"a MAC and a prefix", func() { gn.Prefixes = []netip.Prefix{prefix("0.0.0.0/0")} }, []string{"tunnel gateway mx mpls-gre", "tunnel gateway mx mpls-gre ethernet"}},
		{"a static route", func() {
			gn.Prefixes, gn.MACs = nil, nil
			s.Routes = []model.Route{{Network: "red", Prefix: prefix("10.9.0.0/16"), Via: []model.Via{{Gateway: "mx"}}}}
		}, []string{"tunnel gateway mx mpls-gre"}},
	} {
		c.change()
		tables, _ := compiled(t, s, nil)
		got := slices.DeleteFunc(tables.names(), func(n string) bool { return !strings.Contains(n, "gateway mx") })
		if _, maySend := tables.Remotes[layout.AddressOf(addrs("192.0.2.9")[0])]; !slices.Equal(got, c.want) || !maySend {
			t.Errorf("%s: nexthops %q, want %q; it may send: %v", c.what, got, c.want, maySend)
		}
		// What leads there is no matter for the workload's MTU.
		if mtu := tables.Vifs[100].MTU; mtu != 9000-46 {
			t.Errorf("%s: the vif's MTU is %d, want 9000 less 46 (Ethernet over MPLSoUDP)", c.what, mtu)
		}
	}
}

func TestUnreachableNodesAreNamedAndLeftOut(t *testing.T) {
	a, b := model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}
	for _, c := range []struct {
		what   string
		change func(a, b *model.Node)
		want   string
	}{
		{"no encapsulation in common", func(a, b *model.Node) { a.Encapsulations, b.Encapsulations = encaps("u g"), encaps("v") }, `node "b" offers none of this node's encapsulations [mpls-udp mpls-gre]: its ports cannot be reached`},
		{"no family in common", func(_, b *model.Node) { b.Underlay = addrs("2001:db8::2") }, `node "b" has no underlay address of this node's families: its ports cannot be reached`},
	} {
		a, b := a, b
		c.change(&a, &b)
		tables, warnings := compiled(t, pairOf(a, b, model.L3), nil)
		if !slices.Equal(warnings, []string{c.want}) {
			t.Errorf("%s: warnings %q, want %q", c.what, warnings, c.want)
		}
		if r, has := tables.Routes[RouteKey{7, prefix("10.1.0.3/32")}]; has {
			t.Errorf("%s: the route to its port is %+v", c.what, r)
		}
	}
}

func TestATunnelWhoseUnderlayIsDownStaysWithoutPaths(t *testing.T) {
	s := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}, model.L3)
	tables, warnings := compiled(t, s, func(f *Facts) { f.Way, f.MTU = nil, 1500 })
	_, n := tables.named("tunnel b mpls-udp")
	want := layout.Nexthop{Type: layout.Tunnel, Remote: 1, Encap: layout.Number(model.MPLSoUDP), Flags: layout.NexthopDF, Port: layout.Network16(6635), MTU: 1468, DMAC: model.RouterMAC}
	if n.Nexthop != want {
		t.Errorf("it is %+v, want %+v", n, want)
	}
	if w := `node "b": there is no way through the underlay from 192.0.2.1 to 192.0.2.2`; !slices.Equal(warnings, []string{w}) {
		t.Errorf("warnings %q, want %q", warnings, w)
	}
}

func TestTunnelsCarryWhatTheirNetworksNeed(t *testing.T) {
	for _, c := range []struct {
		encap      string
		forwarding model.Forwarding
		want       string // names and MTUs at 9000
	}{
		{"u", model.L3, "tunnel b mpls-udp 8968 6635"},
		{"u", model.L2, "tunnel b mpls-udp ethernet 8954 6635"},
		{"g", model.L2L3, "tunnel b mpls-gre 8972 0, tunnel b mpls-gre ethernet 8958 0"},
		{"v", model.L3, "tunnel b vxlan 8950 4789"},
		{"v", model.L2L3, "tunnel b vxlan 8950 4789"},
	} {
		node := func(a string) model.Node {
			return model.Node{Underlay: addrs(a), Encapsulations: encaps(c.encap)}
		}
		tables, _ := compiled(t, pairOf(node("192.0.2.1"), node("192.0.2.2"), c.forwarding), nil)
		var got []string
		for _, name := range tables.names() {
			if _, n := tables.named(name); n.Type == layout.Tunnel {
				got = append(got, fmt.Sprint(name, " ", n.MTU, " ", layout.Network16(n.Port)))
			}
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("%s, %s: %s, want %s", c.encap, c.forwarding, g, c.want)
		}
	}
}

// A node whose link fails does not lower the MTU of ports, if it has no ports in their
// networks.
func TestANodeThatDoesNotRunDoesNotLowerTheMTU(t *testing.T) {
	node := func(a string) model.Node { return model.Node{Underlay: addrs(a), Encapsulations: encaps("d v")} }
	s := pairOf(node("192.0.2.1"), node("192.0.2.2"), model.L3)
	c := node("192.0.2.3")
	c.Name = "c"
	s.Nodes = append(s.Nodes, c)
	tables, _ := compiled(t, s, func(f *Facts) {
		f.Link = func(a netip.Addr, _ uint32) Link {
			if a == c.Underlay[0] {
				return LinkFails
			}
			return LinkWorks
		}
	})
	for _, v := range tables.Vifs {
		if v.MTU != 9000 {
			t.Errorf("vif %d has MTU %d, want 9000", v.ID, v.MTU)
		}
	}
}

// If no pair of nodes uses an encapsulation, this node leaves its packets to other programs.
func TestAnEncapsulationIsInTheSettingsWhileItIsUsed(t *testing.T) {
	gateway := model.Gateway{Name: "mx", Addresses: addrs("192.0.2.9"), Encapsulation: model.VXLAN}
	type settings struct {
		VXLANPort uint16
		UDP, GRE  bool
	}
	for _, c := range []struct {
		what, a, b string
		change     func(*model.State)
		want       settings
	}{
		{"VXLAN by both", "u v", "v", nil, settings{VXLANPort: 4789}},
		{"VXLAN by this node", "u v", "u", nil, settings{UDP: true}},
		{"VXLAN by the other node", "u", "u v", nil, settings{UDP: true}},
		{"UDP and GRE by both", "u g", "u g", nil, settings{UDP: true, GRE: true}},
		{"GRE by both", "g v", "u g", nil, settings{GRE: true}},
		{"VXLAN by a gateway", "u", "u", func(s *model.State) { s.Gateways = []model.Gateway{gateway} }, settings{4789, true, false}},
		{"all by this node, from any source", "u v g", "u", func(s *model.State) { s.Settings.AnySource = true }, settings{4789, true, true}},
	} {
		state := model.State{Settings: model.Settings{VXLANPort: 4789}, Nodes: []model.Node{
			{Name: "a", Underlay: addrs("192.0.2.1"), Encapsulations: encaps(c.a)},
			{Name: "b", Underlay: addrs("192.0.2.2"), Encapsulations: encaps(c.b)},
		}}
		if c.change != nil {
			c.change(&state)
		}
		tables, _, err := compile(state, "a", Facts{}, &IDs{})
		s := tables.Settings
		if got := (settings{layout.Network16(s.VXLANPort), s.Flags&layout.SettingsMPLSUDP != 0, s.Flags&layout.SettingsMPLSGRE != 0}); err != nil || got != c.want {
			t.Errorf("%s: the settings have %+v, want %+v; %v", c.what, got, c.want, err)
		}
	}
}
