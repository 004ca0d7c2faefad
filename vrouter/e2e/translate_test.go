package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

// routedPair returns workloads on two nodes with locators. A router is between the nodes.
// It waits until both nodes translate.
func routedPair(b *bed, others ...model.Encapsulation) (x, y *workload) {
	b.t.Helper()
	b.state.Nodes = b.nodesOf(false, append([]model.Encapsulation{model.Direct}, others...)...)
	for i, n := range b.nodes {
		b.state.Nodes[i].Locator = n.locator()
	}
	b.state.Networks = []model.Network{{Name: "red", ID: 291, VNI: 1001, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	x, y = b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
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

// inLocator returns the IPv6 address of a workload in a node's locator.
func (n *node) inLocator(network uint16, a netip.Addr) netip.Addr {
	b := n.locator().Addr().As16()
	binary.BigEndian.PutUint16(b[10:], network)
	copy(b[12:], a.AsSlice())
	var sum uint32
	for i := 0; i < 12; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[8:], ^uint16(sum+sum>>16))
	return netip.AddrFrom16(b)
}

// TCP transfers and datagrams of every size arrive intact over a routed underlay. Packets
// that cannot be translated go by the tunnel.
func TestTranslatedPacketsArriveIntact(t *testing.T) {
	for _, offload := range []string{"none", "tcp", "tunnel"} {
		t.Run(offload, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, options{offload: offload, routed: true})
			x, y := routedPair(b, model.VXLAN)
			const n = 50 << 20
			checkIntact(t, x, y, 1450, n)
			for _, node := range b.nodes {
				if sent := node.translated(); sent < n {
					t.Errorf("node %s has sent %d bytes in translated packets, want at least the %d of an IPv4 transfer", node.name, sent, n)
				}
			}
		})
	}
}

// translated returns how many bytes a node has sent in translated packets.
func (n *node) translated() (sent uint64) {
	for _, network := range rows[inspect.VRFStats](n, "vrfstats") {
		sent += network.ByEncapsulation[string(model.Translated)].TxBytes
	}
	return sent
}

// On the wire, a TCP or UDP packet of a workload is an IPv6 packet without outer headers.
func TestATranslatedPacketIsPlainIPv6(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{routed: true})
	x, y := routedPair(b, model.VXLAN)
	frames := watchFor(t, b.nodes[1].ns, "fab", []byte("on the wire"))
	c, err := x.dial("udp4", netip.AddrPortFrom(y.ip(4), 7777).String()) // Linux sets DF
	b.must(err)
	defer c.Close()
	fmt.Fprint(c, "on the wire")
	all := frames(2 * time.Second)
	if len(all) == 0 {
		t.Fatal("no frame with the payload arrived at the fabric device")
	}
	from, to := b.nodes[0].inLocator(291, x.ip(4)), b.nodes[1].inLocator(291, y.ip(4))
	f := all[0]
	if binary.BigEndian.Uint16(f[12:]) != 0x86dd || !bytes.Equal(f[14+8:14+24], from.AsSlice()) || !bytes.Equal(f[14+24:14+40], to.AsSlice()) || f[14+6] != 17 {
		t.Errorf("the packet on the wire is %x, want UDP from %s to %s", f, from, to)
	}
	trace := b.nodes[0].run("trace", "--from", "x", "--to", y.ip(4).String())
	if !strings.Contains(trace, "forwarded to node b by translated, network 291") {
		t.Errorf("the trace does not name translated and network 291:\n%s", trace)
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
	t.Parallel()
	b := newBed(t, options{routed: true})
	x, y := routedPair(b, model.VXLAN)
	routes := b.handle(b.sw)
	lost := &netlink.Route{Dst: ipNet(b.nodes[1].locator()), Gw: b.nodes[1].v6.AsSlice()}
	b.must(routes.RouteDel(lost))
	for i, n := range b.nodes {
		n.awaitWays(b.nodes[1-i].name, "vxlan")
	}
	if err := transfer(x, y, 4, 8<<20); err != nil {
		t.Errorf("a transfer by tunnel: %v", err)
	}
	if text := b.nodes[0].run("doctor"); !strings.Contains(text, b.nodes[1].locator().String()) {
		t.Errorf("doctor does not report the locator of node b:\n%s", text)
	}
	done := make(chan error, 1)
	go func() { done <- transfer(y, x, 4, 200<<20) }()
	b.must(routes.RouteAdd(lost))
	for i, n := range b.nodes {
		n.awaitWays(b.nodes[1-i].name, "translated", "vxlan")
	}
	if err := <-done; err != nil {
		t.Errorf("a connection that was open during the change: %v", err)
	}
	if err := transfer(x, y, 4, 8<<20); err != nil {
		t.Errorf("a translated transfer: %v", err)
	}
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
	if err := transfer(x, y, 4, 8<<20); err != nil {
		t.Errorf("a transfer through a link with MTU 1400: %v", err)
	}
	learned := uint32(0)
	for _, nh := range rows[inspect.Nexthop](b.nodes[0], "nh", "list") {
		if strings.HasPrefix(nh.Name, "tunnel b translated") {
			learned = nh.LearnedMTU
		}
	}
	if learned != 1400 {
		t.Errorf("the nexthop that translates has the learned MTU %d, want 1400", learned)
	}
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
		{"the node of the workload", b.nodes[1].inLocator(291, y.ip(4)), to, ""},
	} {
		before := b.nodes[0].drops()
		b.sendOnSwitch("port0", forged(c.from, c.to))
		if got := heard(); got != (c.reason == "") {
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
	if err := transfer(x, y, 4, 8<<20); err != nil {
		t.Errorf("a transfer while the agent does not run: %v", err)
	}
	kernel := func() string {
		var all []byte
		for _, what := range []string{"address", "route"} {
			out, err := exec.Command("ip", "-n", n.space, "-6", what, "show").CombinedOutput()
			if err != nil {
				t.Fatalf("ip -6 %s: %v: %s", what, err, out)
			}
			all = append(all, out...)
		}
		return string(all)
	}
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
