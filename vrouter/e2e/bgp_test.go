package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/bgp"
	"windtunnel/vrouter/model"
)

func mustAddr(text string) netip.Addr { return netip.MustParseAddr(text) }

func target(text string) []model.RouteTarget {
	t, err := model.ParseRouteTarget(text)
	if err != nil {
		panic(err)
	}
	return []model.RouteTarget{t}
}

// bgpBed returns a bed whose last nodes are routers, without agents. The agents run in the network namespaces
// of their nodes, because BGP requires this.
func bgpBed(t *testing.T, nodes, routers int) *bed {
	b := newBed(t, options{nodes: nodes, bare: routers})
	for _, n := range b.agents() {
		delete(n.config, "netns")
		n.under = []string{"nsenter", "--net=/run/netns/" + n.space}
	}
	return b
}

// configureBGP sets the state of the bed: BGP between each agent and each router, and the networks red, which
// routes, and wire, which bridges.
func (b *bed) configureBGP(encaps ...model.Encapsulation) {
	b.state.Nodes = b.nodesOf(false, encaps...)[:len(b.agents())]
	var routers []model.Neighbor
	for _, n := range b.nodes[len(b.agents()):] {
		routers = append(routers, model.Neighbor{Address: n.v4})
	}
	for i := range b.state.Nodes {
		b.state.Nodes[i].BGP = &model.BGP{ASN: 64512, RouterID: b.nodes[i].v4, Neighbors: routers}
	}
	b.state.Networks = []model.Network{
		{Name: "red", ID: 1, VNI: 1001, Subnets: subnets("10.1.0.0/16", "fd00:1::/64"), Import: target("64512:1001"), Export: target("64512:1001")},
		{Name: "wire", ID: 2, VNI: 2002, Forwarding: model.L2L3, Subnets: subnets("10.2.0.0/24", "fd00:2::/64"), Import: target("64512:2002"), Export: target("64512:2002")},
	}
}

// evpnConfig returns the configuration of bgpd for an EVPN router.
func evpnConfig(b *bed, router *node) string {
	var c strings.Builder
	fmt.Fprintf(&c, "router bgp 64512\n bgp router-id %s\n no bgp default ipv4-unicast\n bgp graceful-restart\n", router.v4)
	for _, n := range b.agents() {
		fmt.Fprintf(&c, " neighbor %s remote-as 64512\n neighbor %s timers connect 1\n", n.v4, n.v4)
	}
	c.WriteString(" address-family l2vpn evpn\n")
	for _, n := range b.agents() {
		fmt.Fprintf(&c, "  neighbor %s activate\n", n.v4)
	}
	c.WriteString("  advertise-all-vni\n  advertise ipv4 unicast\n  advertise ipv6 unicast\n exit-address-family\n")
	c.WriteString(" address-family ipv4 unicast\n  network 10.9.0.0/24\n exit-address-family\n address-family ipv6 unicast\n  network fd00:9::/64\n exit-address-family\n")
	return c.String()
}

// evpnRouter makes a node an EVPN router. It routes VNI 1001 to the host lan, and bridges VNI 2002 to the host
// tap. The prefixes of lan are in FRR's default VRF, because not all kernels have VRF devices.
func evpnRouter(t *testing.T, router *node) (f *frr, lan, tap *workload) {
	t.Helper()
	f = newFRR(t, router, evpnConfig(router.bed, router), "vni 1001\n")
	f.exec("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0")
	f.vni(1001)
	lan = f.behind("lan", "", "10.9.0.2/24", "fd00:9::2/64")
	f.ip("address add 10.9.0.1/24 dev lan")
	f.ip("address add fd00:9::1/64 dev lan nodad")
	for _, via := range []string{"10.9.0.1", "fd00:9::1"} {
		if out, err := lan.command("ip", "route", "add", "default", "via", via); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	tap = f.behind("tap", f.vni(2002), "10.2.0.200/24", "fd00:2::200/64")
	tap.command("ip", "link", "set", "eth0", "mtu", "1450")
	return f, lan, tap
}

// rib returns the paths that the node's neighbours announce.
func (n *node) rib() []bgp.Verdict {
	n.bed.t.Helper()
	return rows[bgp.Verdict](n, "bgp", "rib")
}

// uses waits until the node uses a path to each of these destinations.
func (n *node) uses(destinations ...string) {
	n.bed.t.Helper()
	soon(n.bed.t, "the node uses the paths to "+strings.Join(destinations, ", "), func() error {
		all, err := ask(n, func(c *api.Client, ctx context.Context) ([]bgp.Verdict, error) { return c.BGPPaths(ctx, false) })
		for _, d := range destinations {
			if err == nil && !slices.ContainsFunc(all, func(v bgp.Verdict) bool { return v.State == bgp.Used && v.Destination() == d }) {
				text, _ := json.Marshal(all)
				err = fmt.Errorf("the path to %s is missing or not used: %s", d, text)
			}
		}
		return err
	})
}

// reaches waits until a datagram gets from one workload to another and back.
func reaches(t testing.TB, from, to *workload, version int) {
	t.Helper()
	soon(t, fmt.Sprintf("IPv%d from %s to %s", version, from.port.Name, to.port.Name), func() error { return datagram(from, to, version, 64) })
}

// FRR with the kernel's VXLAN is a gateway of two nodes, which have different router MAC addresses. It
// exchanges prefixes (EVPN type 5) of a network that routes, and stations and broadcast (types 2 and 3) of a
// network that bridges.
func TestFRRIsAnEVPNGateway(t *testing.T) {
	t.Parallel()
	b := bgpBed(t, 3, 1)
	b.configureBGP()
	f, lan, tap := evpnRouter(t, b.nodes[2])
	x := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	y := b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
	w := b.workload("w", "wire", 0, "10.2.0.10", "fd00:2::10")
	b.up()
	f.start()
	a := b.nodes[0]
	a.uses("10.9.0.0/24", "fd00:9::/64", "broadcast")
	f.shows("bgpd", "show bgp l2vpn evpn", "[5]:[0]:[32]:[10.1.0.10]", "[5]:[0]:[128]:[fd00:1::11]", "[3]:[0]:[32]:[172.30.0.1]")
	for _, version := range []int{4, 6} {
		reaches(t, x, lan, version)
		reaches(t, y, lan, version)
		reaches(t, w, tap, version)
		for _, pair := range [][2]*workload{{x, lan}, {y, lan}, {w, tap}} {
			checkTransfer(pair[0], pair[1], version, bulk/4)
			checkTransfer(pair[1], pair[0], version, bulk/4)
		}
	}
	b.nodes[0].uses("10.9.0.0/24")
	for _, v := range a.rib() {
		if v.Kind == bgp.Station && v.State == bgp.Used && v.Networks[0] != "wire" {
			t.Errorf("the station %s is in network %v", v.Destination(), v.Networks)
		}
	}
	largest(t, x, lan, 4)
	largest(t, w, tap, 4)
}

// FRR learns the floating address of a workload as a host route. A host behind FRR reaches the workload by this
// address, and knows the workload by it. The address of a workload without a floating address stays. FRR forgets the
// address when the port is deleted.
func TestFRRReachesAFloatingAddress(t *testing.T) {
	t.Parallel()
	needs(t, "ip", "iptables", "ip6tables")
	b := bgpBed(t, 2, 1)
	b.configureBGP(model.VXLAN)
	f, lan, _ := evpnRouter(t, b.nodes[1])
	x := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	b.up()
	f.start()
	a := b.nodes[0]
	a.run("network", "nat", "red", "--pool", "192.0.2.8/29", "--pool", "2001:db8:77::8/125")
	w, floating := &workload{bed: b, ns: b.namespace("w")}, addresses("192.0.2.14", "2001:db8:77::e")
	w.port = one[api.Port](a, "port", "add", "--name", "w", "--network", "red", "--netns", b.name+"-w", "--floating", floating[0].String(), "--floating", floating[1].String()).Port
	routes := []string{"[5]:[0]:[32]:[192.0.2.14]", "[5]:[0]:[128]:[2001:db8:77::e]"}
	f.shows("bgpd", "show bgp l2vpn evpn", append(routes, "[5]:[0]:[32]:[10.1.0.10]")...)
	a.uses("10.9.0.0/24", "fd00:9::/64")
	known, err := f.vtysh("bgpd", "show bgp l2vpn evpn")
	b.must(err)
	if inside := w.ip(4).String(); strings.Contains(known, "["+inside+"]") {
		t.Errorf("FRR knows the address %s of the workload in the subnet:\n%s", inside, known)
	}
	reaches(t, w, lan, 4)
	reaches(t, w, lan, 6)
	of := func(word string, all []netip.Addr) func(bool) string {
		return func(v6 bool) string { return word + " " + all[map[bool]int{false: 0, true: 1}[v6]].String() }
	}
	replies(t, w.ns, "floating", w.port.IPs...)
	replies(t, lan.ns, "lan", lan.port.IPs...)
	expectReplies(t, lan.ns, floating, of("floating", lan.port.IPs))
	expectReplies(t, w.ns, lan.port.IPs, of("lan", floating))
	expectReplies(t, x.ns, lan.port.IPs, of("lan", x.port.IPs))
	for _, version := range []int{4, 6} {
		checkTransfer(w, lan, version, bulk/4)
	}
	largest(t, w, lan, 4)
	a.run("port", "delete", "w")
	soon(t, "FRR has no route to the floating address", func() error {
		known, err := f.vtysh("bgpd", "show bgp l2vpn evpn")
		for _, r := range routes {
			if err == nil && strings.Contains(known, r) {
				err = fmt.Errorf("FRR has the route %s:\n%s", r, known)
			}
		}
		return err
	})
}

// largest checks that a packet with the size of the workload's MTU arrives without fragmentation.
func largest(t *testing.T, from, to *workload, version int) {
	t.Helper()
	out, err := from.command("cat", "/sys/class/net/eth0/mtu")
	from.bed.must(err)
	var mtu int
	fmt.Sscan(out, &mtu)
	size := mtu - 28 // IPv4 and UDP headers
	one, err := from.unfragmented(version)
	from.bed.must(err)
	defer one.Close()
	two, err := to.unfragmented(version)
	from.bed.must(err)
	defer two.Close()
	if err := echo(one, two, make([]byte, size), make([]byte, 1<<16)); err != nil || mtu < 1400 {
		t.Errorf("send a packet of %d bytes, the MTU of %s, to %s: %v; the MTU must be at least 1400", mtu, from.port.Name, to.port.Name, err)
	}
}

// When a session ends or starts again, or a router withdraws a route, the node's routes follow.
func TestBGPRoutesFollowTheSessions(t *testing.T) {
	t.Parallel()
	b := bgpBed(t, 2, 1)
	b.configureBGP(model.VXLAN)
	f, lan, _ := evpnRouter(t, b.nodes[1])
	x := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	b.up()
	f.start()
	a := b.nodes[0]
	a.uses("10.9.0.0/24")
	reaches(t, x, lan, 4)

	f.ip("address del 10.9.0.1/24 dev lan")
	gone := func(what string) {
		t.Helper()
		soon(t, what, func() error {
			if rt := a.run("rt", "list"); strings.Contains(rt, "10.9.0.0/24") {
				return fmt.Errorf("the route is still there:\n%s", rt)
			}
			return nil
		})
	}
	gone("the withdrawn route is gone")
	f.ip("address add 10.9.0.1/24 dev lan")
	if out, err := lan.command("ip", "route", "replace", "default", "via", "10.9.0.1"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a.uses("10.9.0.0/24")
	reaches(t, x, lan, 4)

	// While the agent restarts, its node keeps forwarding. FRR deletes EVPN routes when the session ends, so
	// packets arrive only in one direction.
	a.kill(syscall.SIGTERM)
	f.shows("bgpd", "show bgp neighbors", "Peer closed the session")
	arrives(t, x, lan)
	a.start()
	arrives(t, x, lan)
	a.uses("10.9.0.0/24")
	reaches(t, x, lan, 4)

	// With a wrong AS number, the neighbour has a reason.
	a.run("bgp", "enable", "--asn", "64512", "--router-id", a.v4.String(), "--neighbor", f.v4.String()+",asn=64999")
	soon(t, "the neighbour has the reason of the missing session", func() error {
		if out := a.run("bgp", "neighbor", "-o", "json"); !strings.Contains(out, "another AS number") {
			return fmt.Errorf("the reason is missing:\n%s", out)
		}
		return nil
	})
	a.run("bgp", "disable")
	gone("the routes are gone without BGP")
	if out, err := a.try("bgp", "rib"); err == nil || !strings.Contains(err.Error(), "node a has no BGP; enable it with `vrouter bgp enable`") {
		t.Errorf("`bgp rib` of a node without BGP prints %s and returns %v, want a hint to enable BGP", out, err)
	}
}

// arrives checks that a datagram gets from one workload to another.
func arrives(t *testing.T, from, to *workload) {
	t.Helper()
	var server net.PacketConn
	from.bed.must(in(to.ns, func() (err error) {
		server, err = net.ListenPacket("udp", netip.AddrPortFrom(to.ip(4), 0).String())
		return err
	}))
	defer server.Close()
	c, err := from.dial("udp", server.LocalAddr().String())
	from.bed.must(err)
	defer c.Close()
	_, err = c.Write([]byte("one way"))
	from.bed.must(err)
	if n := receive(server, 1, 20*time.Second); n != 1 {
		t.Errorf("no datagram arrives from %s at %s:\n%s", from.port.Name, to.port.Name, from.bed.nodes[0].log())
	}
}

// Two routers announce one prefix, and the node spreads flows over both. When one router withdraws the prefix,
// all flows take the other. Behind each router is a host with the same address.
func TestTwoRoutersShareTheFlows(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := bgpBed(t, 3, 2)
	b.configureBGP(model.VXLAN)
	var routers []*frr
	var hosts []*workload
	for _, n := range b.nodes[1:] {
		f, lan, _ := evpnRouter(t, n)
		routers, hosts = append(routers, f), append(hosts, lan)
	}
	x := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	b.up()
	var servers []net.PacketConn
	for i, h := range hosts {
		b.must(in(h.ns, func() error {
			s, err := net.ListenPacket("udp", "10.9.0.2:7000")
			servers = append(servers, s)
			return err
		}))
		defer servers[i].Close()
		routers[i].start()
	}
	a := b.nodes[0]
	soon(t, "the node uses both routers", func() error {
		for _, r := range a.rib() {
			if r.Destination() == "10.9.0.0/24" && r.State != bgp.Used {
				return fmt.Errorf("the node does not use the path %+v", r)
			}
		}
		if n := strings.Count(a.run("bgp", "rib", "--family", "evpn"), "10.9.0.0/24"); n != 2 {
			return fmt.Errorf("the node has %d paths to 10.9.0.0/24, want 2", n)
		}
		return nil
	})
	spread := func() (got [2]int) {
		for range 40 {
			c, err := x.dial("udp", "10.9.0.2:7000") // another source port each time
			b.must(err)
			c.Write([]byte("flow"))
			c.Close()
		}
		for i, s := range servers {
			got[i] = receive(s, 40, 2*time.Second)
		}
		return got
	}
	soon(t, "flows take both routers", func() error { // the RIB shows a route before the data path has it
		if got := spread(); got[0] < 5 || got[1] < 5 || got[0]+got[1] != 40 {
			return fmt.Errorf("the routers got %v of 40 flows, want at least 5 each and 40 together", got)
		}
		return nil
	})
	routers[0].ip("address del 10.9.0.1/24 dev lan")
	soon(t, "all flows take the other router", func() error {
		if got := spread(); got != [2]int{0, 40} {
			return fmt.Errorf("the routers got %v of 40 flows, want [0 40]", got)
		}
		return nil
	})
}

// FRR's bgpd and a node exchange VPNv4 and VPNv6 routes. The test sends no packets, because the kernels of the
// tests have no MPLS.
func TestFRRExchangesVPNRoutes(t *testing.T) {
	t.Parallel()
	b := bgpBed(t, 2, 1)
	b.configureBGP(model.MPLSoUDP, model.MPLSoGRE)
	router := b.nodes[1]
	b.state.Nodes[0].Underlay = append(b.state.Nodes[0].Underlay, b.nodes[0].v6) // FRR's VPNv6 routes have an IPv6 next hop
	config := fmt.Sprintf(`router bgp 64512
 bgp router-id %[1]s
 no bgp default ipv4-unicast
 neighbor %[2]s remote-as 64512
 neighbor %[2]s timers connect 1
 address-family ipv4 vpn
  neighbor %[2]s activate
 exit-address-family
 address-family ipv6 vpn
  neighbor %[2]s activate
 exit-address-family
 address-family ipv4 unicast
  redistribute connected
  label vpn export 300
  rd vpn export %[1]s:1
  rt vpn both 64512:1001
  export vpn
  import vpn
 exit-address-family
 address-family ipv6 unicast
  redistribute connected
  label vpn export 301
  rd vpn export %[1]s:1
  rt vpn both 64512:1001
  export vpn
  import vpn
 exit-address-family
`, router.v4, b.nodes[0].v4)
	f := newFRR(t, router, config, "")
	f.behind("lan", "", "10.9.0.2/24", "fd00:9::2/64")
	f.ip("address add 10.9.0.1/24 dev lan")
	f.ip("address add fd00:9::1/64 dev lan nodad")
	b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	b.up()
	f.start()
	a := b.nodes[0]
	f.shows("bgpd", "show bgp ipv4 vpn", "10.1.0.10/32", "172.30.0.1:1")
	a.uses("10.9.0.0/24", "fd00:9::/64")
	for _, v := range a.rib() {
		want := map[model.BGPFamily]uint32{model.VPNv4: 300, model.VPNv6: 301}[v.Family]
		if v.State == bgp.Used && (v.Value != want || v.Encapsulation != model.MPLSoUDP || v.NextHop != router.v4 && v.NextHop != router.v6 || v.RD.String() != router.v4.String()+":1") {
			t.Errorf("the node uses the path %+v with label %d and %s, want label %d, %s, and the next hop and distinguisher of the router", v.Path, v.Value, v.Encapsulation, want, model.MPLSoUDP)
		}
	}
	f.shows("bgpd", "show bgp ipv4 vpn", "10.1.0.10/32", "172.30.0.1:1")
	f.shows("bgpd", "show bgp ipv6 vpn", "fd00:1::10/128")
	f.shows("bgpd", "show bgp ipv4 vpn 10.1.0.10/32", "Remote label: 18", "RT:64512:1001") // label 16 + 2·id
	if rt := a.run("rt", "list"); !strings.Contains(rt, "10.9.0.0/24") || !strings.Contains(rt, "300") {
		t.Errorf("the node's table has no route with label 300:\n%s", rt)
	}
	// FRR keeps the node's routes while its agent restarts.
	a.kill(syscall.SIGTERM)
	f.shows("bgpd", "show bgp neighbors", "NSF peer closed the session")
	f.shows("bgpd", "show bgp ipv4 vpn", "S>i10.1.0.10/32")
	a.start()
	if rt := a.run("rt", "list"); !strings.Contains(rt, "10.9.0.0/24") {
		t.Errorf("the node's table has lost the routes after a restart:\n%s", rt)
	}
	f.shows("bgpd", "show bgp ipv4 vpn", "*>i10.1.0.10/32")
	soon(t, "the router has announced all routes again", func() error {
		if out := a.run("bgp", "neighbor", "-o", "json"); !strings.Contains(out, "established") || strings.Contains(out, `"stale"`) {
			return fmt.Errorf("the neighbours are %s", out)
		}
		return nil
	})
}
