package fib

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// ownerOf returns the network to which an address belongs for a network that imports routes; "": none.
// It reads the state and not the tables.
func (w *world) ownerOf(a netip.Addr, network string) string {
	for _, name := range append([]string{network}, w.leaks[network]...) {
		n, _ := w.state.Network(name)
		has := func(p netip.Prefix) bool { return p == netip.PrefixFrom(a, a.BitLen()) }
		if _, in := n.Subnet(a); in || slices.ContainsFunc(w.prefixesOf(n), has) {
			return name
		}
	}
	return ""
}

// prefixesOf returns the prefixes of static routes and gateways.
func (w *world) prefixesOf(n model.Network) (all []netip.Prefix) {
	for _, r := range w.state.Routes {
		if r.Network == n.Name {
			all = append(all, r.Prefix)
		}
	}
	for _, g := range w.state.Gateways {
		gn, _ := g.Network(n.Name)
		all = append(all, gn.Prefixes...)
	}
	return all
}

// nodeOf returns the node of the port that has an address in a network; "": none.
func (w *world) nodeOf(network string, a netip.Addr) string {
	for _, p := range w.state.Ports {
		if p.Network == network && slices.Contains(p.IPs, a) {
			return p.Node
		}
	}
	return ""
}

// checkLeaks checks that a workload reaches exactly the ports of the networks whose routes its network
// imports. Another node accepts the packets only if the network of the destination imports the route to
// their source.
func (w *world) checkLeaks(from model.Port, v layout.Vif, n model.Network, absent map[string]bool) {
	imported := w.leaks[n.Name]
	for _, to := range w.state.Ports {
		for _, a := range to.IPs {
			if to.Network == n.Name || absent[to.Name] {
				continue
			}
			p := packet{dmac: model.RouterMAC, ip: a}
			ends := w.fromWorkload(from.Node, v, p)
			imports := n.Routes() && slices.Contains(imported, to.Network) && w.ownerOf(a, n.Name) == to.Network
			if reached := reflect.DeepEqual(ends, []end{{node: to.Node, port: to.Name, dmac: to.MAC}}); reached != imports && (imports || absent == nil) { // without the absent ports, another route can match
				w.t.Fatalf("a packet from %s of %s to %s of %s (%s) gets to %+v; its route is imported: %v", from.Name, n.Name, to.Name, to.Network, a, ends, imports)
			}
			for _, source := range from.IPs {
				if !imports {
					continue
				}
				w.crossed++
				p.source = source
				back := from.Node == to.Node || w.nodeOf(w.ownerOf(source, to.Network), source) == from.Node
				if end := w.fromWorkload(from.Node, v, p)[0]; (end.port == to.Name) != back {
					w.t.Fatalf("a packet from %s (%s) of %s to %s of %s gets to %+v; a route leads back: %v", from.Name, source, n.Name, to.Name, to.Network, end, back)
				}
			}
		}
	}
}

// twoNetworks has red with a port on node b, and blue with one on node a. Each imports the other's
// routes.
func twoNetworks(a, b model.Node) model.State {
	s := pairOf(a, b, model.L3)
	s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 8, Tenant: "other", Subnets: []netip.Prefix{prefix("10.2.0.0/16")}})
	for i := range s.Networks {
		s.Networks[i].Import, s.Networks[i].Export = []model.RouteTarget{{0, 2, 1}}, []model.RouteTarget{{0, 2, 1}}
	}
	s.Ports[0] = model.Port{Name: "pa", Network: "blue", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 1}, IPs: addrs("10.2.0.2")}
	return s
}

// A translated packet names the network of its sender, so a packet to another network is sent by a tunnel.
// Without a tunnel there is no route, and a warning says what to do.
func TestPacketsToOtherNetworksAreNotTranslated(t *testing.T) {
	for offers, want := range map[string]string{"d v": "tunnel b vxlan", "d": ""} {
		node := func(a, locator string) model.Node {
			return model.Node{Underlay: addrs(a), Encapsulations: encaps(offers), Locator: prefix(locator)}
		}
		s := twoNetworks(node("192.0.2.1", "fd77:0:0:1::/64"), node("198.51.100.2", "fd77:0:0:2::/64"))
		s.Routes = []model.Route{{Network: "red", Prefix: prefix("10.9.0.0/16"), Via: []model.Via{{Port: "pb"}}}}
		tables, warnings := compiled(t, s, func(f *Facts) {
			f.Link = func(a netip.Addr, _ uint32) Link {
				if a.Is4() {
					return NoLink
				}
				return LinkWorks
			}
		})
		r, has := tables.Routes[RouteKey{8, prefix("10.1.0.3/32")}]
		if got := tables.Names[r.Nexthop]; got != want || has != (want != "") || has && r.Label != 700 {
			t.Errorf("nodes that offer %s: the route leads to %q with label %d, want %q with 700", offers, got, r.Label, want)
		}
		static := tables.Routes[RouteKey{8, prefix("10.9.0.0/16")}]
		if got := tables.Names[static.Nexthop]; got != want || want == "" && static != (layout.Route{}) {
			t.Errorf("nodes that offer %s: the static route is %+v by %q, want %q", offers, static, got, want)
		}
		if n, _ := tables.named("tunnel b translated"); n == 0 {
			t.Errorf("nodes that offer %s do not translate", offers)
		}
		if (len(warnings) > 0) != (want == "") || len(warnings) > 0 && !strings.Contains(warnings[0], `network "red" on node "b" cannot be reached from the networks that import its routes`) {
			t.Errorf("nodes that offer %s: warnings %q", offers, warnings)
		}
	}
}

// A node accepts packets of the other node's router in the network of the router, and in the networks that
// import its routes.
func TestAllowSourcesApplyInTheNetworksThatImport(t *testing.T) {
	s := twoNetworks(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")})
	behind := prefix("198.18.0.0/15")
	s.Ports[1].AllowSources = []netip.Prefix{behind}
	vrfs := func() (all []uint32) {
		tables, _ := compiled(t, s, nil)
		for k := range tables.Senders {
			for vrf := range uint32(10) {
				if k == layout.SenderOf(vrf, layout.Network32(k.Remote), behind) {
					all = append(all, vrf)
				}
			}
		}
		slices.Sort(all)
		return all
	}
	must.Equal(t, []uint32{8}, vrfs())
	s.Ports = append(s.Ports, model.Port{Name: "here", Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 4}, IPs: addrs("10.1.0.4")})
	must.Equal(t, []uint32{7, 8}, vrfs())
	s.Networks[1].Import = nil
	must.Equal(t, []uint32{7}, vrfs())
}

// Blue imports the static routes and the gateway's prefixes of red and green. Of equal prefixes blue's own
// is used first, then that of the network with the lower id.
func TestTheFirstNetworksRouteIsUsed(t *testing.T) {
	s := twoNetworks(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")})
	green := s.Networks[1]
	green.Name, green.ID, green.Tenant, green.Subnets = "green", 9, "third", []netip.Prefix{prefix("10.1.0.0/24"), prefix("10.3.0.0/16")}
	s.Networks = append(s.Networks, green)
	s.Ports = append(s.Ports, model.Port{Name: "pg", Network: "green", Node: "b", MAC: model.MAC{2, 0, 0, 0, 0, 3}, IPs: addrs("10.1.0.3", "10.3.0.3")})
	s.Gateways = []model.Gateway{{Name: "mx", Addresses: addrs("192.0.2.9"), Encapsulation: model.MPLSoGRE, Networks: []model.GatewayNetwork{{Network: "red", Label: 100, Prefixes: []netip.Prefix{prefix("203.0.113.0/24")}}}}}
	for _, r := range []struct{ network, to, port string }{
		{"blue", "10.9.0.0/16", "pa"}, {"red", "10.9.0.0/16", "pb"}, {"red", "10.8.0.0/16", "pb"}, {"green", "10.8.0.0/16", "pg"}, {"green", "10.2.7.0/24", "pg"}, {"green", "0.0.0.0/0", "pg"},
		{"blue", "10.3.0.3/32", "pa"},
	} {
		s.Routes = append(s.Routes, model.Route{Network: r.network, Prefix: prefix(r.to), Via: []model.Via{{Port: r.port}}})
	}
	must.Succeed(t, s.Validate())
	tables, warnings := compiled(t, s, nil)
	for to, want := range map[string]string{
		"10.2.0.2/32": "port pa 0", "10.1.0.3/32": "tunnel b mpls-udp 30", "203.0.113.0/24": "tunnel gateway mx mpls-gre 100", "10.9.0.0/16": "port pa 0", "10.8.0.0/16": "tunnel b mpls-udp 30",
		"0.0.0.0/0": "tunnel b mpls-udp 34", "10.3.0.3/32": "port pa 0", "10.2.0.0/16": " 0", "10.1.0.0/16": " 0", "10.3.0.0/16": " 0", "10.2.7.0/24": "none", "10.1.0.0/24": "none",
	} {
		got := "none"
		if r, has := tables.Routes[RouteKey{8, prefix(to)}]; has {
			got = fmt.Sprint(tables.Names[r.Nexthop], " ", r.Label)
		}
		if got != want {
			t.Errorf("%s leads to %q, want %q", to, got, want)
		}
	}
	want := []string{
		`network "blue" imports no routes of network "green" within 10.1.0.0/16: network "red" has addresses there too, and its id is lower; change one of the subnets, or the route targets`,
		`network "blue" imports no routes of network "green" within 10.3.0.3/32: network "blue" has addresses there too, and a network's own routes come first; change one of the subnets, or the route targets`,
		`network "blue" does not import the route 10.9.0.0/16 of network "red": network "blue" has one too, and a network's own routes come first; change one of them, or the route targets`,
		`network "blue" does not import the route 10.2.7.0/24 of network "green": network "blue" has 10.2.0.0/16, and a network's own routes come first; change one of them, or the route targets`,
		`network "blue" does not import the route 10.8.0.0/16 of network "green": network "red" has one too, and its id is lower; change one of them, or the route targets`,
	}
	slices.Sort(want)
	slices.Sort(warnings)
	if !slices.Equal(want, warnings) {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(warnings, "\n"), strings.Join(want, "\n"))
	}
}
