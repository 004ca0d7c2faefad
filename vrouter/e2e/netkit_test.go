package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/kerneltest"
	"windtunnel/vrouter/model"
)

// bedModules are the kernel modules that a bed and its agents need.
var bedModules = []string{
	"net/llc/llc", "net/802/stp", "net/bridge/bridge", "drivers/net/veth", "net/ipv4/udp_tunnel", "net/ipv6/ip6_udp_tunnel",
	"drivers/net/vxlan/vxlan", "net/sched/sch_ingress", "net/sched/cls_bpf", "net/sched/sch_tbf", "net/netfilter/nfnetlink", "net/xfrm/xfrm_algo", "net/xfrm/xfrm_user",
}

// Workloads with netkit devices exchange packets on one node, and between nodes by each
// encapsulation. Node b decapsulates in tc instead of XDP.
func TestNetkitDevicesCarryTraffic(t *testing.T) {
	if !kerneltest.In() {
		kerneltest.Needs(t, "CONFIG_NETKIT=y")
		kerneltest.Run(t, kerneltest.Guest{Seconds: 540, Megabyte: 2048, Modules: bedModules, Program: program})
		return
	}
	if err := netdev.TryDevice(config.Netkit); err != nil {
		t.Skip(err)
	}
	b := newBed(t, options{config: map[string]any{"workload_device": "netkit"}})
	b.nodes[1].config["xdp"] = "off"
	for _, encap := range []model.Encapsulation{model.Direct, model.VXLAN, model.MPLSoUDP} {
		for _, forwarding := range []model.Forwarding{model.L3, model.L2} {
			if encap == model.Direct && forwarding == model.L2 {
				continue
			}
			b.run(fmt.Sprintf("%s %s", encap, forwarding), func(t *testing.T) { netkitTraffic(t, b, encap, forwarding) })
		}
	}
}

func netkitTraffic(t *testing.T, b *bed, encap model.Encapsulation, forwarding model.Forwarding) {
	b.state.Nodes = b.nodesOf(false, encap)
	if encap == model.Direct {
		b.state.Nodes = b.nodesOf(false, encap, model.VXLAN)
	}
	b.state.Networks = []model.Network{{Name: "red", ID: 291, VNI: 1001, Forwarding: forwarding, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	x, y := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "red", 0, "10.1.0.11", "fd00:1::11")
	z := b.workload("z", "red", 1, "10.1.0.12", "fd00:1::12")
	b.up()
	if encap == model.Direct {
		b.nodes[0].awaitWays("b", "direct")
		b.nodes[1].awaitWays("a", "direct")
	}
	vif := b.nodes[0].vif("x")
	if vif.Mode != "netkit+tcx" {
		t.Errorf("the programs are attached by %s, want netkit+tcx", vif.Mode)
	}
	// While the state is applied, one node knows the network and the ports before the other.
	atStart := []map[string]uint64{b.nodes[0].drops(), b.nodes[1].drops()}
	before := received(t, b.nodes[0], vif.Device)
	for _, other := range []*workload{y, z} {
		for _, version := range []int{4, 6} {
			for _, ends := range [][2]*workload{{x, other}, {other, x}} {
				checkTransfer(ends[0], ends[1], version, 4<<20)
			}
			for _, size := range []int{1, 1400, 9000} {
				if err := datagram(x, other, version, size); err != nil {
					t.Errorf("an IPv%d datagram of %d bytes to workload %s: %v", version, size, other.port.Name, err)
				}
			}
			if got, err := x.ping(other.ip(version), 64); err != nil || got != ipv4.ICMPTypeEchoReply && got != ipv6.ICMPTypeEchoReply {
				t.Errorf("ping of %s gives %v, %v, want an echo reply", other.ip(version), got, err)
			}
			if forwarding == model.L2 {
				continue
			}
			if got, err := x.ping(other.ip(version), 1); err != nil || got != ipv4.ICMPTypeTimeExceeded && got != ipv6.ICMPTypeTimeExceeded {
				t.Errorf("ping of %s with hop limit 1 gives %v, %v, want time exceeded", other.ip(version), got, err)
			}
		}
	}
	// Only neighbour discovery enters the node's end. Routed packets go on from netkit's hook.
	if packets := received(t, b.nodes[0], vif.Device) - before; (packets > 100) != (forwarding == model.L2) {
		t.Errorf("%d packets entered the node's end of the pair, in a network with forwarding %s", packets, forwarding)
	}
	if forwarding == model.L2 {
		for _, to := range []*workload{y, z} {
			checkOtherProtocols(t, x, to)
			checkOtherProtocols(t, to, x)
		}
	}
	for i, node := range b.nodes {
		drops := node.drops()
		for reason, n := range drops {
			expected := reason == "link_local" || reason == "ttl_exceeded" // router solicitations, pings with hop limit 1
			if !expected && n > atStart[i][reason] {
				t.Errorf("node %s dropped %d packets with the reason %s", node.name, n-atStart[i][reason], reason)
			}
		}
	}
}

// checkOtherProtocols checks that frames that are not IP arrive once, and that the kernel
// knows their protocol.
func checkOtherProtocols(t *testing.T, from, to *workload) {
	t.Helper()
	const protocol = 0x88b6 // for local experiments (IEEE 802)
	var fd int
	must.Succeed(t, in(to.ns, func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol<<8&0xffff|protocol>>8)
		return err
	}))
	defer unix.Close(fd)
	for what, dst := range map[string]model.MAC{"unicast": to.port.MAC, "broadcast": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		frame := slices.Concat(dst[:], from.port.MAC[:], []byte{protocol >> 8, protocol & 0xff}, []byte(what), make([]byte, 46))
		from.sendFrame(frame)
		time.Sleep(time.Second)
		var got []string
		for buf := make([]byte, 2048); ; {
			n, err := unix.Read(fd, buf)
			if err != nil {
				break
			}
			got = append(got, strings.TrimRight(string(buf[14:n]), "\x00"))
		}
		if !slices.Equal(got, []string{what}) {
			t.Errorf("of a %s frame from workload %s, workload %s received %q", what, from.port.Name, to.port.Name, got)
		}
	}
}

// received returns the packets that entered a device of the node.
func received(t *testing.T, n *node, device string) int {
	t.Helper()
	var packets int
	n.bed.must(in(n.ns, func() error {
		l, err := n.bed.handle(n.ns).LinkByName(device)
		if err == nil {
			packets = int(l.Attrs().Statistics.RxPackets)
		}
		return err
	}))
	return packets
}

// ping sends an echo request with a hop limit, and returns the type of the answer.
func (w *workload) ping(to netip.Addr, hops int) (got icmp.Type, err error) {
	network, request, protocol := "ip4:icmp", icmp.Type(ipv4.ICMPTypeEcho), 1
	answers := []icmp.Type{ipv4.ICMPTypeEchoReply, ipv4.ICMPTypeTimeExceeded, ipv4.ICMPTypeDestinationUnreachable}
	if to.Is6() {
		network, request, protocol = "ip6:ipv6-icmp", ipv6.ICMPTypeEchoRequest, 58
		answers = []icmp.Type{ipv6.ICMPTypeEchoReply, ipv6.ICMPTypeTimeExceeded, ipv6.ICMPTypeDestinationUnreachable}
	}
	var c *icmp.PacketConn
	if err := in(w.ns, func() (err error) {
		c, err = icmp.ListenPacket(network, map[bool]string{true: "::", false: "0.0.0.0"}[to.Is6()])
		return err
	}); err != nil {
		return nil, err
	}
	defer c.Close()
	if to.Is6() {
		err = c.IPv6PacketConn().SetHopLimit(hops)
	} else {
		err = c.IPv4PacketConn().SetTTL(hops)
	}
	if err != nil {
		return nil, err
	}
	message := icmp.Message{Type: request, Body: &icmp.Echo{ID: 7, Seq: hops, Data: []byte("netkit")}}
	data, err := message.Marshal(nil)
	if err != nil {
		return nil, err
	}
	if _, err := c.WriteTo(data, &net.IPAddr{IP: to.AsSlice()}); err != nil {
		return nil, err
	}
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	for buf := make([]byte, 2048); ; {
		n, _, err := c.ReadFrom(buf)
		if err != nil {
			return nil, err
		}
		if m, err := icmp.ParseMessage(protocol, buf[:n]); err == nil && slices.Contains(answers, m.Type) {
			return m.Type, nil
		}
	}
}

// A kernel without netkit is refused with the reason and a remedy.
func TestAKernelWithoutNetkitIsRefused(t *testing.T) {
	if netdev.TryDevice(config.Netkit) == nil {
		t.Skip("this kernel has netkit")
	}
	b := newBed(t, options{nodes: 1, config: map[string]any{"workload_device": "netkit"}})
	n := b.nodes[0]
	b.must(n.launch())
	err := n.agent.Wait()
	n.agent = nil
	if log := n.log(); err == nil || !strings.Contains(log, "workload_device: netkit: this kernel has no such devices; use Linux 6.8 or later with CONFIG_NETKIT=y, or set workload_device: veth") {
		t.Errorf("the agent ended with %v and wrote:\n%s", err, log)
	}
}
