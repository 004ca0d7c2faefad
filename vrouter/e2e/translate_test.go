package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// routedPair returns workloads on two nodes with locators. A router is between the nodes.
// It waits until both nodes translate.
func routedPair(b *bed, others ...model.Encapsulation) (x, y *workload) {
	b.t.Helper()
	x, y = routedState(b, others...)
	b.up()
	want := []string{"translated"}
	for _, e := range others {
		want = append(want, string(e))
	}
	slices.Sort(want)
	for i, n := range b.nodes[:2] {
		n.awaitWays(b.nodes[1-i].name, want...)
	}
	return x, y
}

// routedState adds the nodes and workloads of routedPair to the state.
func routedState(b *bed, others ...model.Encapsulation) (x, y *workload) {
	b.t.Helper()
	b.state.Nodes = b.nodesOf(false, append([]model.Encapsulation{model.Direct}, others...)...)
	for i, n := range b.nodes {
		b.state.Nodes[i].Locator = n.locator()
	}
	b.state.Networks = append(b.state.Networks, model.Network{Name: "red", ID: 291, VNI: 1001, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")})
	return b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
}

// inLocator returns the address of a workload in a node's locator.
func (n *node) inLocator(network uint16, a netip.Addr) netip.Addr {
	b, inner := n.locator().Addr().As16(), a.As16()
	copy(b[12:], inner[12:])
	if a.Is4() {
		clear(inner[:12])
	} else {
		network |= 0x8000
	}
	binary.BigEndian.PutUint16(b[10:], network)
	var sum uint32
	for i := 0; i < 12; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:])) + uint32(^binary.BigEndian.Uint16(inner[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b[8:], ^uint16(sum+sum>>16))
	return netip.AddrFrom16(b)
}

// TCP transfers and datagrams of every size, also in IPv6 fragments, arrive intact over a
// routed underlay. Packets that cannot be translated go by the tunnel.
func TestTranslatedPacketsArriveIntact(t *testing.T) {
	for _, offload := range []string{"none", "tcp", "tunnel"} {
		t.Run(offload, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, options{offload: offload, routed: true})
			x, y := routedPair(b, model.VXLAN)
			checkIntact(t, x, y, 1480, bulk, "too_big") // the first fragments are too large for the tunnel; then the sender knows its MTU
			for _, node := range b.nodes {
				if sent := node.sent(model.Translated); sent < uint64(2*bulk) {
					t.Errorf("node %s has sent %d bytes in translated packets, want at least the %d of an IPv4 and an IPv6 transfer", node.name, sent, 2*bulk)
				}
			}
			checkFallbacks(t, b.nodes[0])
		})
	}
}

// checkFallbacks checks that the node of workload x has counted the IPv4 fragments that took the
// tunnel, and that the metric has the same number.
func checkFallbacks(t *testing.T, n *node) {
	t.Helper()
	var fragments, all uint64
	tunnelled := n.drops()["too_big"]
	for _, f := range answer(n, (*api.Client).Fallbacks) {
		all += f.Packets
		if f.Reason == "fragment" {
			fragments = f.Packets
		}
	}
	for _, network := range answer(n, (*api.Client).VRFStats) {
		tunnelled += network.ByEncapsulation[string(model.VXLAN)].TxPackets
	}
	if fragments == 0 || all > tunnelled {
		t.Errorf("node %s has counted %d fragments and %d fallbacks, and has sent %d packets by VXLAN; want some fragments, and no more fallbacks than packets and those that were too large", n.name, fragments, all, tunnelled)
	}
	n.wantMetric(fmt.Sprintf("vrouter_fallback_packets_total{network=\"red\",reason=\"fragment\"} %d", fragments))
}

// wantMetric reports an error unless the metrics of the node's agent have a line.
func (n *node) wantMetric(line string) {
	n.bed.t.Helper()
	if !strings.Contains(n.metrics(), line+"\n") {
		n.bed.t.Errorf("the metrics of node %s lack %q", n.name, line)
	}
}

// metrics returns the metrics of the node's agent.
func (n *node) metrics() string {
	n.bed.t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", n.config["socket"].(string))
	}}}
	answer, err := client.Get("http://vrouter/metrics")
	n.bed.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	n.bed.must(err)
	return string(text)
}

// sent returns how many bytes a node has sent with an encapsulation.
func (n *node) sent(e model.Encapsulation) (sent uint64) {
	for _, network := range answer(n, (*api.Client).VRFStats) {
		sent += network.ByEncapsulation[string(e)].TxBytes
	}
	return sent
}

// On the wire, a TCP or UDP packet of a workload is an IPv6 packet without outer headers. A
// large IPv6 datagram is not in a tunnel either: its fragments are translated.
func TestATranslatedPacketIsPlainIPv6(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{routed: true})
	x, y := routedPair(b, model.VXLAN)
	for _, c := range []struct {
		version, padding int
		header           byte // the protocol of the packet with the last bytes
	}{{4, 0, 17}, {6, 0, 17}, {6, 3000, 44}} {
		frames := watchFor(t, b.nodes[1].ns, "fab", []byte("on the wire"))
		conn, err := x.dial("udp", netip.AddrPortFrom(y.ip(c.version), 7777).String()) // Linux sets DF
		b.must(err)
		fmt.Fprint(conn, strings.Repeat("-", c.padding), "on the wire")
		conn.Close()
		from, to := b.nodes[0].inLocator(291, x.ip(c.version)), b.nodes[1].inLocator(291, y.ip(c.version))
		f := first(t, frames)
		if binary.BigEndian.Uint16(f[12:]) != 0x86dd || !bytes.Equal(f[14+8:14+24], from.AsSlice()) || !bytes.Equal(f[14+24:14+40], to.AsSlice()) || f[14+6] != c.header {
			t.Errorf("IPv%d, %d bytes more: the packet on the wire is %x, want protocol %d from %s to %s", c.version, c.padding, f, c.header, from, to)
		}
		trace := b.nodes[0].run("trace", "--from", "x", "--to", y.ip(c.version).String())
		if want := fmt.Sprintf("forwarded to node b by translated, network 291, from %s to %s", from, to); !strings.Contains(trace, want) {
			t.Errorf("IPv%d: the trace lacks %q:\n%s", c.version, want, trace)
		}
	}
	want := fmt.Sprintf("translated %s → %s via", b.nodes[0].locator().Addr(), b.nodes[1].locator().Addr())
	if list := b.nodes[0].run("nh", "list"); !strings.Contains(list, want) {
		t.Errorf("the list of nexthops lacks %q:\n%s", want, list)
	}
}

// If the underlay does not route a locator, nodes use a tunnel. After the underlay routes
// it again, nodes translate again. A connection that is open during the second change
// survives it.
func TestALocatorThatIsNotRoutedGetsATunnel(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := sharedBed(t, options{routed: true})
	x, y := routedPair(b, model.VXLAN)
	routes := b.handle(b.sw)
	lost := &netlink.Route{Dst: ipNet(b.nodes[1].locator()), Gw: b.nodes[1].v6.AsSlice()}
	b.must(routes.RouteDel(lost))
	b.awaitWays("vxlan")
	checkTransfer(x, y, 4, 8<<20)
	if text := b.nodes[0].run("doctor"); !strings.Contains(text, b.nodes[1].locator().String()) {
		t.Errorf("doctor does not report the locator of node b:\n%s", text)
	}
	end := openTransfer(y, x, 4)
	b.must(routes.RouteAdd(lost))
	b.awaitWays("translated", "vxlan")
	if err := end(); err != nil {
		t.Errorf("a connection that was open during the change: %v", err)
	}
	checkTransfer(x, y, 4, 8<<20)
}

// A router of the underlay with a smaller MTU reports it, and the sender's node learns it.
func TestTranslatedPacketsLearnTheMTUOfThePath(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{routed: true})
	x, y := routedPair(b, model.VXLAN)
	h := b.handle(b.sw)
	port, err := h.LinkByName("port1")
	b.must(err)
	b.must(h.LinkSetMTU(port, 1400))
	for _, version := range []int{4, 6} {
		checkTransfer(x, y, version, 8<<20)
	}
	learned := uint32(0)
	for _, nh := range table(b.nodes[0], (*api.Client).Nexthops) {
		if strings.HasPrefix(nh.Name, "tunnel b translated") {
			learned = nh.LearnedMTU
		}
	}
	if learned != 1400 {
		t.Errorf("the nexthop that translates has the learned MTU %d, want 1400", learned)
	}
}

// The MTU of workloads is the underlay's less 20 bytes, by which translation makes IPv4 packets longer. A packet of this size
// that cannot be translated is too large for the tunnel. The node refuses it, and its sender then sends fragments.
func TestTranslatedPacketsUseTheWholeMTU(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{routed: true})
	x, y := routedPair(b, model.VXLAN)
	const mtu = 1500 - 20
	must.Equal(t, mtu, must.Get(b.handle(x.ns).LinkByName(model.DefaultInterface))(t).Attrs().MTU)
	from, to := must.Get(x.unfragmented(4))(t), must.Get(y.unfragmented(4))(t)
	defer from.Close()
	defer to.Close()
	must.Succeed(t, echo(from, to, bytes.Repeat([]byte{1}, mtu-28), make([]byte, mtu)))
	b.expectNoDrops()
	must.Succeed(t, sendWithoutDF(x, y, mtu-28)) // takes the fallback
	checkTransfer(x, y, 4, 1<<20)
	checkTransfer(x, y, 6, 1<<20)
}

// A network that only bridges has no gateway that could tell a workload of the smaller MTU.
func TestABridgedTransferFollowsTheMTUOfThePath(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{routed: true})
	x, y := pair(b, model.L2, false, model.VXLAN)
	h := b.handle(b.sw)
	port, err := h.LinkByName("port1")
	b.must(err)
	b.must(h.LinkSetMTU(port, 1400))
	if err := sendWithoutDF(x, y, 1380); err != nil {
		t.Errorf("a datagram without DF through a link with MTU 1400: %v; drops %v", err, b.nodes[0].drops())
	}
	for _, version := range []int{4, 6} {
		checkTransfer(x, y, version, 1<<20)
	}
}

// sendWithoutDF repeats a datagram without DF until it arrives. If the sender learns the MTU, its
// kernel cuts the datagram into fragments.
func sendWithoutDF(from, to *workload, n int) error {
	var server net.PacketConn
	if err := in(to.ns, func() (err error) {
		server, err = net.ListenPacket("udp", netip.AddrPortFrom(to.ip(4), 0).String())
		return err
	}); err != nil {
		return err
	}
	defer server.Close()
	c, err := from.dial("udp", server.LocalAddr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		return err
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT)
	}); err != nil || set != nil {
		return errors.Join(err, set)
	}
	for range 50 {
		if _, err := c.Write(make([]byte, n)); err != nil {
			return err
		}
		if receive(server, 1, 200*time.Millisecond) == 1 {
			return nil
		}
	}
	return fmt.Errorf("none of 50 datagrams of %d bytes arrived", n)
}

// A node must drop a translated packet that a process on another node sends, that a host
// outside the fleet sends, or that a node sends for a workload that it does not have.
func TestForgedTranslatedPacketsAreNotDelivered(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{nodes: 3, routed: true})
	x, y := routedPair(b, model.VXLAN)
	heard := x.hearing(t, 7777)
	to := b.nodes[0].inLocator(291, x.ip(4))
	fab := func(n *node) model.MAC { return model.MAC{2, 0xfa, 0, 0, 0, byte(n.index + 1)} }
	forged := func(from netip.Addr, to netip.Addr) []byte {
		return udpFrame(t, model.RouterMAC, fab(b.nodes[0]), from, to, 7777, []byte("forged"))
	}
	in(b.nodes[1].ns, func() error {
		return rawFrames{frames: [][]byte{forged(b.nodes[1].inLocator(291, y.ip(4)), to)}}.send("fab")
	})
	if n := b.nodes[1].drops()["forged_tunnel"]; n != 1 {
		t.Errorf("the sending node counts %d drops with reason forged_tunnel, want 1", n)
	}
	wrong := to.As16()
	wrong[8] ^= 1
	outside := node{index: 76}
	for _, c := range []struct {
		name     string
		from, to netip.Addr
		reason   string
	}{
		{"a host outside the fleet", outside.inLocator(291, y.ip(4)), to, "unknown_source"},
		{"an underlay address", b.nodes[1].v6, to, "unknown_source"},
		{"another network", b.nodes[1].inLocator(292, y.ip(4)), to, "unknown_source"},
		{"a node without that workload", b.nodes[2].inLocator(291, y.ip(4)), to, "forged_source"},
		{"a network without a port on this node", b.nodes[1].inLocator(6, y.ip(4)), b.nodes[0].inLocator(6, x.ip(4)), "unknown_label"},
		{"a node to a wrong address", b.nodes[1].inLocator(291, y.ip(4)), netip.AddrFrom16(wrong), "untranslatable"},
		{"a node without that workload, by IPv6", b.nodes[2].inLocator(291, y.ip(6)), b.nodes[0].inLocator(291, x.ip(6)), "forged_source"},
		{"an address outside the network's prefix", b.nodes[1].inLocator(291, netip.MustParseAddr("fd00:2::11")), b.nodes[0].inLocator(291, x.ip(6)), "untranslatable"},
		{"an IPv4 workload to an IPv6 workload", b.nodes[1].inLocator(291, y.ip(4)), b.nodes[0].inLocator(291, x.ip(6)), "unknown_source"},
		{"the node of the workload", b.nodes[1].inLocator(291, y.ip(4)), to, ""},
	} {
		before := b.nodes[0].drops()
		b.sendOnSwitch("port0", forged(c.from, c.to))
		if got := heard(c.reason == ""); got != (c.reason == "") {
			t.Errorf("a packet from %s: delivered %v, want %v", c.name, got, c.reason == "")
		}
		if c.reason != "" && b.nodes[0].drops()[c.reason] != before[c.reason]+1 {
			t.Errorf("a packet from %s: the drops were %v and are %v, want one more with reason %s", c.name, before, b.nodes[0].drops(), c.reason)
		}
	}
}

// Packets to a locator reach the programs while no agent runs. `vrouter remove` removes the
// address and the route of the locator.
func TestTheLocatorOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{routed: true})
	x, y := routedPair(b, model.VXLAN)
	n := b.nodes[1]
	n.kill(9)
	time.Sleep(8 * time.Second) // longer than a failed test takes
	b.nodes[0].awaitWays("b", "translated", "vxlan")
	checkTransfer(x, y, 4, 8<<20)
	kernel := func() string { return n.ip("-6 address show") + n.ip("-6 route show") }
	address := n.locator().Addr().Next().String()
	if text := kernel(); !strings.Contains(text, address+"/128") || !strings.Contains(text, "unreachable "+n.locator().String()) {
		t.Errorf("the kernel lacks the address or the unreachable route of locator %s:\n%s", n.locator(), text)
	}
	if out, err := n.remove(); err != nil {
		t.Fatalf("remove node b: %v: %s", err, out)
	}
	if text := kernel(); strings.Contains(text, strings.TrimSuffix(n.locator().Addr().String(), "::")) {
		t.Errorf("after the node is removed, the kernel has addresses of its locator:\n%s", text)
	}
}

// If the kernel does not accept the locator's address, no packets to or from the node are
// translated. The node reports the reason once, and translates after the operator has removed
// the cause.
func TestANodeWithoutIPv6OnLoUsesTunnels(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{routed: true, config: map[string]any{"repair_interval": "500ms"}})
	x, y := routedState(b, model.VXLAN)
	n := b.nodes[0]
	disable := func(value string) {
		b.must(in(n.ns, func() error {
			return os.WriteFile("/proc/sys/net/ipv6/conf/lo/disable_ipv6", []byte(value), 0o644)
		}))
	}
	disable("1")
	b.up()
	n.awaitWays("b", "vxlan")
	b.nodes[1].awaitWays("a", "vxlan")
	for range 3 {
		b.apply()
		time.Sleep(time.Second) // twice repair_interval
	}
	for _, version := range []int{4, 6} {
		checkTransfer(x, y, version, 1<<20)
	}
	const reason = "net.ipv6.conf.lo.disable_ipv6"
	if log := n.log(); strings.Count(log, reason) != 1 {
		t.Errorf("the log has the reason %d times, want 1:\n%s", strings.Count(log, reason), log)
	}
	if text, _ := n.try("status"); !strings.Contains(text, reason) {
		t.Errorf("the status lacks the reason:\n%s", text)
	}
	disable("0")
	n.awaitWays("b", "translated", "vxlan")
	b.nodes[1].awaitWays("a", "translated", "vxlan")
}

// If IPv6 is off on the host, or on its fabric device, packets to and from the node take a tunnel.
func TestANodeWithoutIPv6UsesTunnels(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for device, reason := range map[string]string{"all": "net.ipv6.conf.lo.disable_ipv6", "fab": ""} {
		t.Run(device, func(t *testing.T) {
			b := newBed(t, options{routed: true})
			x, y := routedState(b, model.VXLAN)
			n := b.nodes[0]
			b.must(in(n.ns, func() error {
				return os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/disable_ipv6", []byte("1"), 0o644)
			}))
			b.up()
			n.awaitWays("b", "vxlan")
			b.nodes[1].awaitWays("a", "vxlan")
			for _, version := range []int{4, 6} {
				checkTransfer(x, y, version, 1<<20)
			}
			if text, _ := n.try("status"); !strings.Contains(text, reason) {
				t.Errorf("the status lacks the reason %s:\n%s", reason, text)
			}
		})
	}
}

// A locator that contains the prefix of a link of the host, or its first addresses, is not used:
// packets take a tunnel, and the hosts on the link stay reachable.
func TestALocatorOnALinkOfTheHostIsNotUsed(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{routed: true, config: map[string]any{"repair_interval": "500ms"}})
	x, y := routedState(b, model.VXLAN)
	n := b.nodes[0]
	for i, c := range []struct{ locator, reason string }{
		{"fd30:0:0:1::/64", "locator: fd30:0:0:1::/64 contains fd30:0:0:1::/64, the prefix of a link, on device fab"},
		{"fd30:0:0:1::/80", "locator: fd30:0:0:1::/80 contains the first addresses of fd30:0:0:1::/64, the prefix of a link, on device fab"},
	} {
		b.state.Nodes[0].Locator = netip.MustParsePrefix(c.locator)
		b.up()
		n.awaitWays("b", "vxlan")
		b.nodes[1].awaitWays("a", "vxlan")
		for _, version := range []int{4, 6} {
			checkTransfer(x, y, version, 1<<20)
		}
		if text, _ := n.try("status"); !strings.Contains(text, c.reason) {
			t.Errorf("the status lacks the reason %q:\n%s", c.reason, text)
		}
		for _, to := range []*node{b.gateway(), b.nodes[1]} {
			checkTransfer(n.itself(), to.itself(), 6, 1<<20)
		}
		if log := n.log(); strings.Count(log, c.reason) != 1 {
			t.Errorf("round %d: the log has the reason %d times, want 1:\n%s", i, strings.Count(log, c.reason), log)
		}
	}
}

// If the prefix of a link is the locator of a node, no node on the link uses it: the hosts on the
// link still reach each other.
func TestThePrefixOfACommonLinkIsNotALocator(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{nodes: 3, bare: 1})
	b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)[:2]
	b.state.Nodes[0].Locator = netip.MustParsePrefix("fd30::/64")
	b.state.Networks = []model.Network{{Name: "red", ID: 291, VNI: 1001, Subnets: subnets("10.1.0.0/16")}}
	x, y := b.workload("x", "red", 0, "10.1.0.10"), b.workload("y", "red", 1, "10.1.0.11")
	other := b.nodes[2]
	other.ip("address add fd30::a8bb:ccff:fedd:1122/64 dev fab nodad") // made from a MAC address
	other.v6 = netip.MustParseAddr("fd30::a8bb:ccff:fedd:1122")
	b.up()
	for i, n := range b.nodes[:2] {
		n.awaitWays(b.nodes[1-i].name, "direct")
		checkTransfer(n.itself(), other.itself(), 6, 1<<20)
		reason := []string{"contains fd30::/64, the prefix of a link, on device fab", "the locator fd30::/64 of node a contains the address fd30::2 of this host"}[i]
		if text, _ := n.try("status"); !strings.Contains(text, reason) {
			t.Errorf("the status of node %s lacks the reason %q:\n%s", n.name, reason, text)
		}
	}
	checkTransfer(x, y, 4, 1<<20)
}

// gateway returns the router on the link of the first node (options.routed).
func (b *bed) gateway() *node {
	return &node{bed: b, ns: b.sw, v4: netip.MustParseAddr("172.30.1.254"), v6: netip.MustParseAddr("fd30:0:0:1::fe")}
}

// States whose locators overlap each other or an underlay address are refused with the reason while
// packets pass, and none is lost: first by a tunnel, then with translation and a tunnel.
func TestARefusedLocatorKeepsWhatIsInUse(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{routed: true})
	x, y := routedState(b, model.VXLAN)
	good := slices.Clone(b.state.Nodes)
	own := good[0].Locator
	refused := []struct {
		change func(nodes []model.Node)
		want   string
	}{
		{func(nodes []model.Node) { nodes[0].Locator, nodes[1].Locator = own, own }, "overlaps the locator of node"},
		{func(nodes []model.Node) {
			nodes[0].Locator, nodes[1].Locator = own, netip.PrefixFrom(own.Addr(), model.LongLocatorBits)
		}, "overlaps the locator of node"},
		{func(nodes []model.Node) {
			nodes[0].Underlay = append(slices.Clone(nodes[0].Underlay), b.nodes[0].v6)
			nodes[1].Locator = netip.PrefixFrom(b.nodes[0].v6, model.LocatorBits).Masked()
		}, "contains the underlay address " + b.nodes[0].v6.String() + ` of node "a"`},
		{func(nodes []model.Node) { nodes[1].Locator = netip.MustParsePrefix("fd77:0:0:9::1/128") }, "is too long"},
	}
	for i := range b.state.Nodes {
		b.state.Nodes[i].Locator = netip.Prefix{}
	}
	b.up()
	var datagrams *counted
	for _, ways := range [][]string{{"vxlan"}, {"translated", "vxlan"}} {
		b.awaitWays(ways...)
		if datagrams == nil {
			b.must(datagram(x, y, 4, 64)) // neighbours resolved
			datagrams = count(t, x, y)
		}
		for _, c := range refused {
			bad := b.state
			bad.Nodes = slices.Clone(good)
			c.change(bad.Nodes)
			file := filepath.Join(b.dir, "bad.yaml")
			writeJSON(t, file, bad)
			for i, n := range b.nodes {
				_, err := n.try("apply", "-f", file)
				must.Fail(t, err, c.want)
				if now := n.ways(b.nodes[1-i].name); !slices.Equal(now, ways) {
					t.Errorf("after the refusal (%s), node %s uses the encapsulations %v, want %v", c.want, n.name, now, ways)
				}
			}
		}
		b.state.Nodes = good
		b.apply()
	}
	datagrams.lost(t)
}

// Translated flows use all underlay links to which the routes of the locators lead.
func TestTranslationUsesParallelLinks(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{routed: true})
	ip := func(space, line string) {
		t.Helper()
		testprogram.Output(t, "ip -n "+space+" "+line)
	}
	router := b.name + "-sw"
	for i, n := range b.nodes {
		own, gateway := fmt.Sprintf("fd31:0:0:%d::1", i+1), fmt.Sprintf("fd31:0:0:%d::254", i+1)
		ip(n.space, fmt.Sprintf("link add fab2 type veth peer name second%d netns %s", i, router))
		ip(n.space, "link set fab2 up")
		ip(router, fmt.Sprintf("link set second%d up", i))
		ip(n.space, "address add "+own+"/64 dev fab2 nodad")
		ip(router, fmt.Sprintf("address add %s/64 dev second%d nodad", gateway, i))
		ip(router, fmt.Sprintf("-6 route replace %s nexthop via %s nexthop via %s", n.locator(), n.v6, own))
		first := netip.MustParsePrefix(n.v6.String()+"/64").Masked().Addr().String() + "fe"
		ip(n.space, fmt.Sprintf("-6 route add %s nexthop via %s nexthop via %s", b.nodes[1-i].locator(), first, gateway))
		n.config["fabric"] = []string{"fab", "fab2"}
	}
	x, y := routedPair(b, model.VXLAN)
	for _, version := range []int{4, 6} {
		sent := func() (all [2]uint64) {
			for i, name := range []string{"fab", "fab2"} {
				l, err := b.handle(b.nodes[0].ns).LinkByName(name)
				b.must(err)
				all[i] = l.Attrs().Statistics.TxBytes
			}
			return all
		}
		before := sent()
		for range 16 {
			if err := transfer(x, y, version, 1<<20); err != nil {
				t.Fatalf("an IPv%d transfer: %v", version, err)
			}
		}
		after := sent()
		for i, name := range []string{"fab", "fab2"} {
			if bytes := after[i] - before[i]; bytes < 1<<20 {
				t.Errorf("%s has sent %d bytes of 16 IPv%d transfers of 1 MiB, want at least one transfer", name, bytes, version)
			}
		}
	}
}
