package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/model"
)

// directPair returns workloads on two nodes that prefer direct to other encapsulations. It
// waits until both nodes have tested the link and send directly.
func directPair(b *bed, forwarding model.Forwarding, others ...model.Encapsulation) (x, y *workload) {
	b.t.Helper()
	b.state.Nodes = b.nodesOf(false, append([]model.Encapsulation{model.Direct}, others...)...)
	b.state.Networks = append(b.state.Networks, model.Network{Name: "red", ID: 291, VNI: 1001, Forwarding: forwarding, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")})
	x, y = b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
	b.up()
	for i, n := range b.nodes[:2] {
		n.awaitWays(b.nodes[1-i].name, directWays(forwarding)...)
	}
	return x, y
}

// directWays returns the ways between two nodes on a link. Bridged frames that cannot be
// restored need a tunnel.
func directWays(forwarding model.Forwarding) []string {
	switch forwarding {
	case model.L2:
		return []string{"direct", "vxlan"}
	case model.L2L3:
		return []string{"direct", "direct", "vxlan"} // for packets and for frames
	}
	return []string{"direct"}
}

// ways returns the encapsulations with which a node reaches another node, in the order of
// their names.
func (n *node) ways(to string) (all []string) {
	for _, nh := range table(n, (*api.Client).Nexthops) {
		if words := strings.Fields(nh.Name); len(words) > 2 && words[0] == "tunnel" && words[1] == to {
			all = append(all, words[2])
		}
	}
	slices.Sort(all)
	return all
}

// awaitWays waits until the node reaches another node with exactly the encapsulations want,
// in the order of their names.
func (n *node) awaitWays(to string, want ...string) {
	n.bed.t.Helper()
	soon(n.bed.t, fmt.Sprintf("node %s reaches node %s with the encapsulations %v", n.name, to, want), func() error {
		if ways := n.ways(to); !slices.Equal(ways, want) {
			return fmt.Errorf("it has %v", ways)
		}
		return nil
	})
}

// awaitWays waits until each of two nodes reaches the other with exactly these encapsulations.
func (b *bed) awaitWays(want ...string) {
	b.t.Helper()
	for i, n := range b.nodes {
		n.awaitWays(b.nodes[1-i].name, want...)
	}
}

// TCP transfers, fragmented datagrams and datagrams of every size arrive intact without a
// tunnel. The MTU of workloads equals the MTU of the underlay.
func TestDirectPacketsArriveIntact(t *testing.T) {
	for _, offload := range []string{"none", "tcp", "tunnel"} {
		t.Run(offload, func(t *testing.T) {
			t.Parallel()
			b := sharedBed(t, options{offload: offload})
			x, y := directPair(b, model.L3)
			if mtu := b.nodes[0].vif("x").MTU; mtu != 1500 {
				t.Errorf("the vif's MTU is %d, want 1500", mtu)
			}
			checkIntact(t, x, y, 1500, bulk)
		})
	}
}

// checkIntact checks that TCP transfers of n bytes, ping, fragmented datagrams and packets of
// every size up to the workloads' MTU arrive intact, and that the nodes drop none.
func checkIntact(t *testing.T, x, y *workload, mtu, n int, expected ...string) {
	t.Helper()
	for _, version := range []int{4, 6} {
		for _, ends := range [][2]*workload{{x, y}, {y, x}} {
			checkTransfer(ends[0], ends[1], version, n)
		}
		sweep(t, x, y, version, mtu)
		for _, size := range []int{1, 64, mtu - 28, mtu - 27, 9000, 65000} {
			if err := datagram(x, y, version, size); err != nil {
				t.Errorf("an IPv%d datagram of %d bytes: %v", version, size, err)
			}
		}
		if out, err := x.command("ping", "-c", "3", "-i", "0.1", "-W", "1", y.ip(version).String()); err != nil {
			t.Errorf("ping by IPv%d: %v: %s", version, err, out)
		}
	}
	for _, node := range x.bed.nodes {
		drops := node.drops()
		delete(drops, "link_local") // the workloads' router solicitations
		for _, reason := range expected {
			delete(drops, reason)
		}
		if len(drops) > 0 {
			t.Errorf("node %s dropped packets by reason: %v, want none", node.name, drops)
		}
	}
}

// On the wire, the packet of a workload has labels as MAC addresses and a hop limit that is
// lower by 1. The packet is otherwise unchanged.
func TestADirectPacketHasNoTunnelHeaders(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	x, y := directPair(b, model.L3)
	frames := watchFor(t, b.nodes[1].ns, "fab", []byte("on the wire"))
	x.sendFrame(udpFrame(t, x.port.MAC, model.RouterMAC, x.ip(4), y.ip(4), 7777, []byte("on the wire")))
	f := first(t, frames)
	to, from := direct.Label(291, b.nodes[1].v4), direct.Label(291, b.nodes[0].v4)
	if !bytes.Equal(f[:6], to[:]) || !bytes.Equal(f[6:12], from[:]) || binary.BigEndian.Uint16(f[12:]) != 0x0800 {
		t.Errorf("the Ethernet header is %x, want labels of network 291 as its addresses", f[:14])
	}
	if ip := f[14:]; ip[8] != 63 || netip.AddrFrom4([4]byte(ip[12:])) != x.ip(4) || netip.AddrFrom4([4]byte(ip[16:])) != y.ip(4) {
		t.Errorf("the IP header is %x", ip[:20])
	}
	trace := b.nodes[0].run("trace", "--from", "x", "--to", y.ip(4).String())
	if !strings.Contains(trace, "forwarded to node b by direct, network 291") {
		t.Errorf("the trace does not name direct and network 291:\n%s", trace)
	}
	if list := b.nodes[0].run("nh", "list"); !strings.Contains(list, fmt.Sprintf("direct %s → %s fab", b.nodes[0].v4, b.nodes[1].v4)) {
		t.Errorf("the list of nexthops lacks the direct path to node b:\n%s", list)
	}
}

// first waits for the first frame of watchFor.
func first(t *testing.T, frames func(time.Duration) [][]byte) (frame []byte) {
	t.Helper()
	soon(t, "wait for a frame with the payload", func() error {
		all := frames(0)
		if len(all) == 0 {
			return errTimeout
		}
		frame = all[0]
		return nil
	})
	return frame
}

// secure enables or disables port security on a switch port. With port security, the port
// passes only broadcast frames and frames to the MAC address of the node's device.
func (b *bed) secure(port string, on bool) {
	b.t.Helper()
	h := b.handle(b.sw)
	l, err := h.LinkByName(port)
	b.must(err)
	learned, err := h.NeighList(l.Attrs().Index, unix.AF_BRIDGE)
	b.must(err)
	for _, e := range learned {
		if on && direct.IsLabelOf(model.MAC(e.HardwareAddr), netip.AddrFrom4([4]byte(e.HardwareAddr[2:]))) {
			b.must(h.NeighDel(&e))
		}
	}
	b.must(h.LinkSetLearning(l, !on))
	b.must(h.LinkSetFlood(l, !on))
	if on {
		node := b.nodes[int(port[len(port)-1]-'0')]
		fab, err := b.handle(node.ns).LinkByName("fab")
		b.must(err)
		b.must(h.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER, HardwareAddr: fab.Attrs().HardwareAddr}))
	}
}

// Two nodes without a tunnel go on to send directly if the tests of their link fail: the tests may have come before
// the other node had started. Here the switch drops the frames of the tests.
func TestNodesWithDirectAloneUseALinkWhoseTestsFail(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{})
	b.state.Nodes = b.nodesOf(false, model.Direct)
	b.state.Networks = []model.Network{{Name: "red", ID: 291, VNI: 1001, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	x, y := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
	b.dropAtSwitch("port1", direct.EtherType)
	b.up()
	for i, n := range b.nodes {
		soon(t, "the test of the link fails", func() error {
			return mustContain(n.run("status"), fmt.Sprintf("the tests of direct to node %q fail", b.nodes[1-i].name))
		})
	}
	reaches(t, x, y, 4)
	reaches(t, y, x, 6)
}

// dropAtSwitch makes a port of the switch drop the frames of an EtherType that it receives.
func (b *bed) dropAtSwitch(port string, etherType uint16) {
	b.t.Helper()
	const protocol, drop, next = 16, 2, -1 // offset of __sk_buff.protocol, and actions of tcx
	filter, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R1, asm.R1, protocol, asm.Word),
		asm.Mov.Imm(asm.R0, drop),
		asm.JEq.Imm(asm.R1, int32(bits.ReverseBytes16(etherType)), "end"),
		asm.Mov.Imm(asm.R0, next),
		asm.Return().WithSymbol("end"),
	}})
	b.must(err)
	b.t.Cleanup(func() { filter.Close() })
	l, err := b.handle(b.sw).LinkByName(port)
	b.must(err)
	b.must(in(b.sw, func() error {
		attached, err := link.AttachTCX(link.TCXOptions{Interface: l.Attrs().Index, Program: filter, Attach: ebpf.AttachTCXIngress})
		if err == nil {
			b.t.Cleanup(func() { attached.Close() })
		}
		return err
	}))
}

// If a link drops frames to labels, nodes use a tunnel. After the link passes labels again,
// nodes send directly again. A connection that is open during the second
// change survives it.
func TestALinkThatDropsLabelsGetsATunnel(t *testing.T) {
	must.Long(t)
	for _, forwarding := range []model.Forwarding{model.L3, model.L2} {
		t.Run(string(forwarding), func(t *testing.T) {
			t.Parallel()
			checkChangeToTunnel(t, forwarding)
		})
	}
}

func checkChangeToTunnel(t *testing.T, forwarding model.Forwarding) {
	b := newBed(t, options{})
	x, y := directPair(b, forwarding, model.VXLAN)
	b.secure("port1", true)
	b.awaitWays("vxlan")
	checkTransfer(x, y, 4, 8<<20)
	if text := b.nodes[0].run("doctor"); !strings.Contains(text, b.nodes[1].v4.String()) || !strings.Contains(text, "labels") {
		t.Errorf("doctor does not report that labels do not reach node b:\n%s", text)
	}
	end := openTransfer(y, x, 4)
	b.secure("port1", false)
	b.awaitWays(directWays(forwarding)...)
	if err := end(); err != nil {
		t.Errorf("a connection that was open during the change to direct: %v", err)
	}
	checkTransfer(x, y, 4, 8<<20)
	if sent := b.nodes[0].sent(model.Direct); sent < 8<<20 {
		t.Errorf("node a has sent %d bytes directly, want at least the %d of a transfer", sent, 8<<20)
	}
}

// In a network that bridges, frames between the addresses of two workloads go directly. Their
// MAC addresses on the wire are labels, and the receiver restores them. All other frames take
// the tunnel. Every frame arrives unchanged.
func TestBridgedFramesGoDirectly(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	for _, forwarding := range []model.Forwarding{model.L2, model.L2L3} {
		b.run(string(forwarding), func(t *testing.T) {
			b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)
			b.state.Networks = []model.Network{{Name: "red", ID: 291, VNI: 1001, Forwarding: forwarding, Subnets: subnets("10.5.0.0/24", "fd00:1::/64")}}
			x, y := b.workload("x", "red", 0, "10.5.0.10", "fd00:1::10"), b.workload("y", "red", 1, "10.5.0.11", "fd00:1::11")
			b.state.Ports[0].AllowSources = subnets("10.9.0.0/16")
			b.up()
			for i, n := range b.nodes {
				n.awaitWays(b.nodes[1-i].name, directWays(forwarding)...)
				n.forgetDrops() // while a node has no port yet, it drops the other node's multicast
			}
			checkIntact(t, x, y, 1450, 16<<20)
			for _, node := range b.nodes {
				if sent := node.sent(model.Direct); sent < 2*16<<20 {
					t.Errorf("node %s has sent %d bytes directly, want at least the %d of an IPv4 and an IPv6 transfer", node.name, sent, 2*16<<20)
				}
			}
			checkBroadcast(t, []*workload{x, y})
			checkBridgedFrames(t, x, y)
			if label := direct.Label(291, b.nodes[1].v4).String(); !strings.Contains(b.nodes[1].filters(), label) {
				t.Errorf("the filter of node b lacks label %s:\n%s", label, b.nodes[1].filters())
			}
			if trace := b.nodes[0].run("trace", "--from", "x", "--to", y.ip(4).String()); !strings.Contains(trace, "forwarded to node b by direct, network 291") {
				t.Errorf("the trace does not name direct and network 291:\n%s", trace)
			}
		})
	}
}

// checkBridgedFrames sends frames from workload x to workload y, and compares them with the frames
// on the wire and at y.
func checkBridgedFrames(t *testing.T, x, y *workload) {
	t.Helper()
	b := x.bed
	to, from := direct.Label(291, b.nodes[1].v4), direct.Label(291, b.nodes[0].v4)
	if b.state.Networks[0].Forwarding == model.L2L3 {
		from[0] ^= 4 // the source of a bridged frame, if the network also routes
	}
	all := []struct {
		name   string
		frame  func(data []byte) []byte
		direct bool
		wire   func(time.Duration) [][]byte
		device func(time.Duration) [][]byte
		got    [][]byte // at y
	}{
		{name: "IPv4", direct: true, frame: func(data []byte) []byte {
			return udpFrame(t, x.port.MAC, y.port.MAC, x.ip(4), y.ip(4), 7777, data)
		}},
		{name: "IPv6", direct: true, frame: func(data []byte) []byte {
			return udpFrame(t, x.port.MAC, y.port.MAC, x.ip(6), y.ip(6), 7777, data)
		}},
		{name: "a source in allow_sources", frame: func(data []byte) []byte {
			return udpFrame(t, x.port.MAC, y.port.MAC, netip.MustParseAddr("10.9.0.1"), y.ip(4), 7777, data)
		}},
		{name: "an address that the destination forwards to", frame: func(data []byte) []byte {
			return udpFrame(t, x.port.MAC, y.port.MAC, x.ip(4), netip.MustParseAddr("10.5.0.77"), 7777, data)
		}},
		{name: "an unknown destination", frame: func(data []byte) []byte {
			return udpFrame(t, x.port.MAC, model.MAC{2, 9, 9, 9, 9, 9}, x.ip(4), y.ip(4), 7777, data)
		}},
		{name: "a frame that is not IP", frame: func(data []byte) []byte {
			header := append(append(y.port.MAC[:], x.port.MAC[:]...), 0x88, 0xb6)
			return append(header, data...)
		}},
	}
	for i := range all {
		c := &all[i]
		data := []byte("bridged as " + c.name + strings.Repeat(".", 60))
		c.wire, c.device = watchFor(t, b.sw, "port0", data), watchFor(t, y.ns, "eth0", data)
	}
	for i := range all {
		c := &all[i]
		x.sendFrame(c.frame([]byte("bridged as " + c.name + strings.Repeat(".", 60))))
	}
	for i := range all {
		soon(t, "the frame at y: "+all[i].name, func() error {
			if all[i].got = append(all[i].got, all[i].device(0)...); len(all[i].got) == 0 {
				return errTimeout
			}
			return nil
		})
	}
	time.Sleep(200 * time.Millisecond) // a frame that is sent twice would come within this time
	for _, c := range all {
		want := c.frame([]byte("bridged as " + c.name + strings.Repeat(".", 60)))
		if got := append(c.got, c.device(0)...); len(got) != 1 || !bytes.Equal(got[0], want) {
			t.Errorf("%s: workload y received\n%x, want one frame\n%x", c.name, got, want)
		}
		labelled := slices.Concat(to[:], from[:], want[12:])
		got := c.wire(0)
		switch {
		case len(got) != 1:
			t.Errorf("%s: %d frames on the wire, want 1", c.name, len(got))
		case c.direct && !bytes.Equal(got[0], labelled):
			t.Errorf("%s: the frame on the wire is\n%x, want\n%x", c.name, got[0], labelled)
		case !c.direct && (len(got[0]) != 50+len(want) || !bytes.HasSuffix(got[0], want)):
			t.Errorf("%s: the packet on the wire is\n%x, want a VXLAN packet with\n%x", c.name, got[0], want)
		}
	}
}

// filters returns the addresses in the filter of the node's fabric device.
func (n *node) filters() string {
	return n.exec("bridge fdb show dev fab")
}

// The filter of a fabric device has the labels of the node's networks, also after the agent
// is killed. After the node is removed, the filter has no labels.
func TestLabelsLeaveWithTheNode(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{})
	directPair(b, model.L3)
	filters := b.nodes[0].filters
	for _, network := range []uint32{0, 291} {
		if label := direct.Label(network, b.nodes[0].v4).String(); !strings.Contains(filters(), label) {
			t.Errorf("the filter lacks label %s:\n%s", label, filters())
		}
	}
	b.nodes[0].kill(9)
	if label := direct.Label(291, b.nodes[0].v4).String(); !strings.Contains(filters(), label) {
		t.Errorf("after the agent was killed the filter lacks label %s:\n%s", label, filters())
	}
	if out, err := b.nodes[0].remove(); err != nil {
		t.Fatalf("remove node a: %v: %s", err, out)
	}
	if strings.Contains(filters(), direct.Label(0, b.nodes[0].v4).String()[len("06:00:"):]) {
		t.Errorf("after the node is removed the filter has labels:\n%s", filters())
	}
}

// The programs answer the tests of a link. So other nodes send directly to a node whose
// agent was killed. The next agent of that node also sends directly.
func TestAKilledAgentDoesNotEndDirectPackets(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{})
	x, y := directPair(b, model.L3, model.VXLAN)
	b.nodes[1].kill(9)
	time.Sleep(8 * time.Second) // longer than a failed test takes
	if ways := b.nodes[0].ways("b"); !slices.Equal(ways, []string{"direct"}) {
		t.Errorf("node a reaches node b with the encapsulations %v, want direct alone", ways)
	}
	end := openTransfer(x, y, 4)
	b.nodes[1].start()
	if err := end(); err != nil {
		t.Errorf("a transfer while the next agent starts: %v", err)
	}
	if mtu := b.nodes[1].vif("y").MTU; mtu != 1500 {
		t.Errorf("the vif's MTU is %d, want 1500", mtu)
	}
}
