package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/model"
)

// bigTCP is a maximum size of superpackets above 64 KiB, bytes.
const bigTCP = 180_000

// bigFabric: the devices of all underlays pass superpackets above 64 KiB (VROUTER_BIG_TCP=1), so the agents raise
// the sizes of the workloads' devices.
var bigFabric = os.Getenv("VROUTER_BIG_TCP") == "1"

// raise lets all devices of namespaces send and merge superpackets of bigTCP bytes.
func (b *bed) raise(spaces ...netns.NsHandle) {
	b.t.Helper()
	for _, ns := range spaces {
		h := b.handle(ns)
		links, err := h.LinkList()
		b.must(err)
		for _, l := range links {
			if l.Type() != "veth" && l.Type() != "netkit" {
				continue
			}
			for _, set := range []func(netlink.Link, int) error{h.LinkSetGSOMaxSize, h.LinkSetGROMaxSize, h.LinkSetGSOIPv4MaxSize, h.LinkSetGROIPv4MaxSize} {
				if err := set(l, bigTCP); err != nil {
					b.t.Skipf("raise the superpackets of device %s: %v (needs Linux 6.3)", l.Attrs().Name, err)
				}
			}
		}
	}
}

// superpackets returns the four maximum sizes of a device.
func (b *bed) superpackets(ns netns.NsHandle, device string) [4]uint32 {
	b.t.Helper()
	l, err := b.handle(ns).LinkByName(device)
	b.must(err)
	a := l.Attrs()
	return [4]uint32{a.GSOMaxSize, a.GROMaxSize, a.GSOIPv4MaxSize, a.GROIPv4MaxSize}
}

// awaitSuperpackets waits until both ends of a workload's pair have a maximum size.
func (b *bed) awaitSuperpackets(w *workload, want uint32) {
	b.t.Helper()
	all := [4]uint32{want, want, want, want}
	n := b.nodes[slices.IndexFunc(b.nodes, func(n *node) bool { return n.name == w.port.Node })]
	outside := n.vif(w.port.Name).Device
	soon(b.t, fmt.Sprintf("superpackets of %s have %d bytes", w.port.Name, want), func() error {
		if got := [2][4]uint32{b.superpackets(n.ns, outside), b.superpackets(w.ns, model.DefaultInterface)}; got != [2][4]uint32{all, all} {
			return fmt.Errorf("the maximum sizes are %v", got)
		}
		return nil
	})
}

// watchBig returns a function that returns the Ethernet headers of packets above 64 KiB
// which a device has received.
func watchBig(t testing.TB, ns netns.NsHandle, device string) func() [][]byte {
	t.Helper()
	var fd int
	if err := in(ns, func() error {
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		filter := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_LEN},
			{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: 14 + 65535 + 8, Jf: 1}, // 8: the jumbo option of IPv6
			{Code: unix.BPF_RET | unix.BPF_K, K: 14},
			{Code: unix.BPF_RET | unix.BPF_K},
		}
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
			return err
		}
		const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: d.Index})
	}); err != nil {
		t.Fatalf("watch device %s: %v", device, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return func() (headers [][]byte) {
		time.Sleep(50 * time.Millisecond)
		for {
			header := make([]byte, 14)
			_, from, err := unix.Recvfrom(fd, header, 0)
			if err != nil {
				return headers
			}
			if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING {
				headers = append(headers, header)
			}
		}
	}
}

// expectNoDrops reports packets that a node dropped, except the router solicitations of
// workloads.
func (b *bed) expectNoDrops() {
	b.t.Helper()
	for _, n := range b.nodes {
		drops := n.drops()
		delete(drops, "link_local")
		if len(drops) > 0 {
			b.t.Errorf("node %s dropped packets by reason: %v, want none", n.name, drops)
		}
	}
}

// Without a tunnel, superpackets above 64 KiB (BIG TCP) cross the nodes whole if every
// device allows them.
func TestDirectSuperpacketsAbove64KiBArriveIntact(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{})
	x, y := directPair(b, model.L3)
	b.raise(b.sw, b.nodes[0].ns, b.nodes[1].ns, x.ns, y.ns)
	big := watchBig(t, b.nodes[1].ns, "fab")
	for version, protocol := range map[int]uint16{4: 0x0800, 6: 0x86dd} {
		checkTransfer(x, y, version, bulk)
		headers := big()
		if len(headers) == 0 {
			t.Errorf("IPv%d: no packet on the fabric is above 64 KiB", version)
		}
		to, from := direct.Label(291, b.nodes[1].v4), direct.Label(291, b.nodes[0].v4)
		for _, h := range headers {
			if !bytes.Equal(h[:6], to[:]) || !bytes.Equal(h[6:12], from[:]) || binary.BigEndian.Uint16(h[12:]) != protocol {
				t.Fatalf("IPv%d: the Ethernet header is %x, want labels of network 291 as its addresses", version, h)
			}
		}
	}
	b.expectNoDrops()
}

// The agent raises the maximum sizes of the workloads' devices while all devices of the fabric pass superpackets above
// 64 KiB, all ways are direct, and the setting is on. It keeps sizes that are not its own.
func TestTheAgentAllowsSuperpacketsAbove64KiBWhereAllDevicesPassThem(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{})
	b.raise(b.sw, b.nodes[0].ns, b.nodes[1].ns)
	z := b.workload("z", "red", 0, "10.1.0.12", "fd00:1::12")
	x, y := directPair(b, model.L3, model.VXLAN)
	all := []*workload{x, y, z}
	await := func(want uint32) {
		t.Helper()
		for _, w := range all {
			b.awaitSuperpackets(w, want)
		}
	}
	await(netdev.BigSuperpacket)
	for to, device := range map[*workload]struct {
		ns   netns.NsHandle
		name string
	}{y: {b.nodes[1].ns, "fab"}, z: {z.ns, model.DefaultInterface}} {
		for _, version := range []int{4, 6} {
			big := watchBig(t, device.ns, device.name)
			checkTransfer(x, to, version, bulk)
			if n := len(big()); n == 0 {
				t.Errorf("IPv%d to %s: no packet is above 64 KiB", version, to.port.Name)
			}
		}
	}
	b.expectNoDrops()

	direct := b.state.Nodes
	b.state.Nodes = b.nodesOf(false, model.VXLAN)
	b.apply()
	await(65536)
	checkTransfer(x, y, 4, bulk)
	b.state.Nodes = direct
	b.apply()
	await(netdev.BigSuperpacket)

	n := b.nodes[1]
	n.kill(unix.SIGTERM)
	changes := func() int {
		log := must.Get(os.ReadFile(filepath.Join(b.dir, n.name+".log")))(t)
		return bytes.Count(log, []byte("maximum size of superpackets"))
	}
	before := changes()
	n.start()
	n.awaitWays("a", "direct")
	must.Equal(t, before, changes()) // a restart changes no size

	fabric := must.Get(b.handle(b.nodes[0].ns).LinkByName("fab"))(t)
	must.Succeed(t, b.handle(b.nodes[0].ns).LinkSetGROMaxSize(fabric, netdev.BigSuperpacket)) // as if an agent had set it
	b.nodes[0].kill(unix.SIGTERM)
	b.nodes[0].config["big_tcp"] = "off"
	b.nodes[0].start()
	all = []*workload{x, z}
	await(65536)
	must.Equal(t, [4]uint32{bigTCP, 65536, bigTCP, bigTCP}, b.superpackets(b.nodes[0].ns, "fab"))
	checkTransfer(x, y, 4, bulk)
	b.expectNoDrops()
}

// The fabric devices do not allow superpackets above 64 KiB, so the kernel cuts them there.
// With the jumbo header of IPv6 in a tunnel, the kernel would lose these packets, and 100 MB
// would take more than 13 s. The test measures time, so no other test runs meanwhile.
func TestSuperpacketsAbove64KiBAreCutOnAFabricWithoutThem(t *testing.T) {
	must.Long(t)
	if bigFabric {
		t.Skip("VROUTER_BIG_TCP is set, so the fabric passes them")
	}
	const limit = 10 * time.Second
	for _, c := range []struct {
		name       string
		encap      model.Encapsulation
		forwarding model.Forwarding
	}{
		{"VXLAN", model.VXLAN, model.L3},
		{"VXLAN, bridged", model.VXLAN, model.L2},
		{"MPLS over UDP", model.MPLSoUDP, model.L3},
		{"MPLS over UDP, bridged", model.MPLSoUDP, model.L2},
		{"MPLS over GRE", model.MPLSoGRE, model.L3},
		{"translation", model.Translated, model.L3},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t, options{routed: c.encap == model.Translated})
			var x, y *workload
			if c.encap == model.Translated {
				x, y = routedPair(b, model.VXLAN)
			} else {
				x, y = pair(b, c.forwarding, false, c.encap)
			}
			b.raise(x.ns, y.ns)
			b.begin() // while a node had no port yet, it dropped the other node's multicast
			big := watchBig(t, b.nodes[1].ns, "fab")
			for _, version := range []int{4, 6} {
				start := time.Now()
				if err := transfer(x, y, version, 100<<20); err != nil {
					t.Fatalf("IPv%d: %v", version, err)
				}
				if took := time.Since(start); took > limit {
					t.Errorf("IPv%d: 100 MB take %v, want less than %v", version, took, limit)
				}
				if n := len(big()); n > 0 {
					t.Errorf("IPv%d: %d packets on the fabric are above 64 KiB, want none", version, n)
				}
			}
			b.expectNoDrops()
		})
	}
}

// A veth fabric carries VXLAN superpackets above 64 KiB whole. The length fields of UDP and of
// the outer IPv4 header are then 0.
func TestAVXLANSuperpacketAbove64KiBArrivesWhole(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{})
	x, y := pair(b, model.L3, false, model.VXLAN)
	b.raise(b.sw, b.nodes[0].ns, b.nodes[1].ns, x.ns, y.ns)
	big := watchBig(t, b.nodes[1].ns, "fab")
	checkTransfer(x, y, 4, 100<<20)
	if len(big()) == 0 {
		t.Error("no packet on the fabric is above 64 KiB")
	}
	b.expectNoDrops()
}
