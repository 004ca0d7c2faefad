package e2e

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
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

// accessModules are the kernel modules of iptables, for tests of node access. Some depend on modules in guestModules, so these are
// loaded first.
var accessModules = []string{
	"net/netfilter/x_tables", "net/netfilter/nf_tables", "net/netfilter/nft_compat", "net/ipv6/netfilter/nf_defrag_ipv6",
	"net/ipv4/netfilter/nf_defrag_ipv4", "net/netfilter/nf_conntrack", "net/netfilter/nf_nat", "net/netfilter/nft_chain_nat", "net/netfilter/nft_ct",
	"net/netfilter/nft_nat", "net/netfilter/nft_masq", "net/netfilter/xt_conntrack", "net/netfilter/xt_MASQUERADE", "net/netfilter/xt_nat",
	"net/netfilter/xt_mark", "net/netfilter/xt_comment", "net/netfilter/xt_addrtype", "net/netfilter/xt_tcpudp", "net/netfilter/xt_multiport",
	"net/netfilter/xt_CT", "net/netfilter/nf_conntrack_netlink",
}

const netkitOption = "CONFIG_NETKIT=y"

// Workloads with netkit devices exchange packets on one node, and between nodes by each
// encapsulation. Node b decapsulates in tc instead of XDP. A port keeps its veth device when its node's new ports
// get netkit devices.
func TestNetkitDevicesCarryTraffic(t *testing.T) {
	must.Long(t)
	if !kerneltest.In() {
		kerneltest.Run(t, kerneltest.Guest{Option: netkitOption, Counted: true, Seconds: 900, Megabyte: 2048, Modules: bedModules, Program: program})
		return
	}
	if _, err := netdev.ChooseDevice(config.Netkit); err != nil {
		t.Skip(err)
	}
	b := newBed(t, options{})
	b.nodes[1].config["xdp"] = "off"
	for _, encap := range []model.Encapsulation{model.Direct, model.VXLAN, model.MPLSoUDP} {
		for _, forwarding := range []model.Forwarding{model.L3, model.L2} {
			if encap == model.Direct && forwarding == model.L2 {
				continue
			}
			b.run(fmt.Sprintf("%s %s", encap, forwarding), func(t *testing.T) { netkitTraffic(t, b, encap, forwarding) })
		}
	}
	b.run("veth", func(t *testing.T) {
		b.nodes[0].restartWith("veth")
		x, z := pair(b, model.L3, false, model.MPLSoUDP)
		b.nodes[0].restartWith("auto")
		y := b.workload("new", "red", 0, "10.1.0.12", "fd00:1::12")
		b.apply()
		for port, want := range map[string]bool{"x": false, "new": true} {
			if mode := b.nodes[0].vif(port).Mode; strings.HasPrefix(mode, "netkit+") != want {
				t.Errorf("the programs of port %s are attached by %s", port, mode)
			}
		}
		for _, ends := range [][2]*workload{{x, y}, {y, x}, {x, z}, {z, y}} {
			checkTransfer(ends[0], ends[1], 4, 1<<20)
			checkTransfer(ends[0], ends[1], 6, 1<<20)
		}
		workloadKeepsItsProgram(t, b, y)
	})
}

// restartWith restarts the agent with another kind of devices for new ports.
func (n *node) restartWith(kind string) {
	n.bed.t.Helper()
	n.kill(unix.SIGTERM)
	n.config["workload_device"] = kind
	n.start()
}

// workloadKeepsItsProgram checks that root in a workload's namespace can neither change its netkit device nor attach
// a program to it, and that the device drops what it sends without the agent's program.
func workloadKeepsItsProgram(t *testing.T, b *bed, w *workload) {
	l := must.Get(b.handle(b.nodes[0].ns).LinkByName(b.nodes[0].vif(w.port.Name).Device))(t)
	device, ok := l.(*netlink.Netkit)
	if !ok || device.PeerPolicy != netlink.NETKIT_POLICY_BLACKHOLE {
		t.Errorf("the node's end is %+v, want a netkit device whose peer drops packets by default", l)
	}
	must.Succeed(t, in(w.ns, func() error {
		inside, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}, License: "GPL"})
		if err != nil {
			return err
		}
		defer program.Close()
		for _, at := range []ebpf.AttachType{ebpf.AttachNetkitPrimary, ebpf.AttachNetkitPeer} {
			attached, err := link.AttachNetkit(link.NetkitOptions{Interface: inside.Attrs().Index, Program: program, Attach: at})
			if err == nil {
				t.Error("a workload attached a program to its netkit device")
				attached.Close()
			} else if !errors.Is(err, unix.EACCES) {
				t.Errorf("a workload attaches a program to its netkit device: %v, want %v", err, unix.EACCES)
			}
		}
		change := &netlink.Netkit{LinkAttrs: *inside.Attrs(), Mode: netlink.NETKIT_MODE_L2, Scrub: netlink.NETKIT_SCRUB_DEFAULT, PeerScrub: netlink.NETKIT_SCRUB_DEFAULT}
		if err := netlink.LinkModify(change); !errors.Is(err, unix.EACCES) {
			t.Errorf("a workload changes the policy of its netkit device: %v, want %v", err, unix.EACCES)
		}
		return nil
	}))
}

// Runs other tests of this package in a VM whose kernel has netkit. There workloads get netkit devices.
func TestOtherTestsPassWithNetkitDevices(t *testing.T) {
	tests := os.Getenv("VROUTER_GUEST_TESTS")
	if tests == "" {
		t.Skip("takes minutes; set VROUTER_GUEST_TESTS to a pattern of tests")
	}
	kerneltest.Run(t, kerneltest.Guest{
		Option: netkitOption, Counted: true, Seconds: 7000, Megabyte: 4096, Modules: slices.Concat(guestModules, accessModules), Program: program, Tests: tests,
		Programs: []string{
			"ip", "bridge", "ethtool", "ping", "traceroute", "tcpdump", "setpriv", "sysctl", "cat", "busybox",
			"iptables", "ip6tables", "iptables-restore", "ip6tables-restore", built(t, portmap), built(t, cnitool),
			"nsenter", "bird", "birdc",
		},
		Parameters: "VROUTER_BULK=1", // emulated CPUs are slow
	})
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
	if !strings.HasPrefix(vif.Mode, "netkit+") { // a check for drift replaces clsact by tcx
		t.Errorf("the programs are attached by %s, want netkit", vif.Mode)
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

// A packet of a workload passes a queue of the kernel (the backlog of a CPU) once on its way to another node with
// veth devices, and never with netkit devices. On the same node it passes one queue with both. With netkit devices a
// packet to another node takes at most 1.3 times the instructions of a packet between nodes without an agent.
func TestPacketsOfNetkitDevicesPassNoQueue(t *testing.T) {
	must.Long(t)
	if !kerneltest.In() {
		kerneltest.Run(t, kerneltest.Guest{Option: netkitOption, Counted: true, Seconds: 600, Megabyte: 2048, Modules: bedModules, Program: program})
		return
	}
	if _, err := netdev.ChooseDevice(config.Netkit); err != nil {
		t.Skip(err)
	}
	const packets = 200
	for kind, want := range map[string]struct{ near, far int }{"veth": {1, 1}, "netkit": {1, 0}} {
		b := newBed(t, options{config: map[string]any{"workload_device": kind}})
		host := instructions(t, b.nodes[0].ns, b.nodes[1].ns, b.nodes[1].v4)
		x, _ := pair(b, model.L3, false, model.Direct)
		near, far := b.workload("near", "red", 0, "10.1.0.20"), b.workload("far", "red", 1, "10.1.0.21")
		b.apply()
		b.nodes[0].awaitWays("b", "direct")
		for _, way := range []struct {
			name     string
			from, to netns.NsHandle
			address  netip.Addr
			passes   int
		}{
			{"between nodes, without vrouter", b.nodes[0].ns, b.nodes[1].ns, b.nodes[1].v4, 0},
			{"between workloads of a node", x.ns, near.ns, near.ip(4), want.near},
			{"between workloads of two nodes", x.ns, far.ns, far.ip(4), want.far},
		} {
			send := datagrams(t, way.from, way.to, way.address)
			send(1) // resolves neighbours
			before := programStats(t)
			queued := countQueued(t, func() { send(packets) })
			var programs []string
			for name, after := range programStats(t) {
				if runs := after.RunCount - before[name].RunCount; runs > packets/10 { // omits programs that ran only for other packets
					programs = append(programs, fmt.Sprintf("%s ran %d times with %d instructions each", name, runs, (after.Runtime-before[name].Runtime)/kerneltest.Instruction/time.Duration(runs)))
				}
			}
			slices.Sort(programs)
			n := instructions(t, way.from, way.to, way.address)
			t.Logf("%s devices, %d packets %s: packets in queues by receiving device %v; %s; a packet takes %.0f instructions, and %.0f between nodes without agents", kind, packets, way.name, queued, strings.Join(programs, ", "), n, host)
			passes := 0
			for device, n := range queued {
				if device == "eth0" || strings.HasPrefix(device, netdev.HostPrefix) {
					passes += n
				}
			}
			if kind == "netkit" && way.to == far.ns && n > 1.3*host {
				t.Errorf("a packet to another node takes %.0f instructions with netkit devices, want at most 1.3 times the %.0f of nodes without an agent", n, host)
			}
			if more := passes - packets*way.passes; more < 0 || more > packets/10 { // other packets, such as neighbour discovery
				t.Errorf("%s devices: %d packets %s passed %d queues of workloads' devices, want %d each", kind, packets, way.name, passes, way.passes)
			}
		}
	}
}

// datagrams returns a function that sends n datagrams from one namespace to another, and receives each before it
// sends the next one.
func datagrams(t *testing.T, from, to netns.NsHandle, address netip.Addr) (send func(n int)) {
	t.Helper()
	var receiver net.PacketConn
	var sender net.Conn
	must.Succeed(t, in(to, func() (err error) {
		receiver, err = net.ListenPacket("udp4", ":7")
		return err
	}))
	must.Succeed(t, in(from, func() (err error) {
		sender, err = net.Dial("udp4", address.String()+":7")
		return err
	}))
	t.Cleanup(func() { sender.Close(); receiver.Close() })
	return func(n int) {
		for range n {
			must.Get(sender.Write([]byte("one")))(t)
			must.Equal(t, 1, receive(receiver, 1, patience*time.Second))
		}
	}
}

// instructions returns the number of instructions that send, forward and receive a datagram of one byte. It includes both
// system calls. The clock also counts the instructions of other programs, so the result is the minimum of 50 rounds.
// RawSyscall is used because Go's monitor thread would execute instructions during other system calls.
func instructions(t *testing.T, from, to netns.NsHandle, address netip.Addr) float64 {
	t.Helper()
	socket := func(ns netns.NsHandle, connect func(fd int, a unix.Sockaddr) error) (fd int) {
		must.Succeed(t, in(ns, func() (err error) {
			if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
				return err
			}
			return connect(fd, &unix.SockaddrInet4{Port: 9, Addr: address.As4()})
		}))
		return fd
	}
	receiver, sender := socket(to, unix.Bind), socket(from, unix.Connect)
	defer unix.Close(receiver)
	defer unix.Close(sender)
	must.Succeed(t, os.WriteFile(bpfStats, []byte("0"), 0o644)) // these statistics cost instructions too
	const packets = 200
	least, buffer := math.Inf(1), uintptr(unsafe.Pointer(new(byte)))
	for range 50 {
		received := 0
		began := time.Now()
		for range packets {
			unix.RawSyscall(unix.SYS_WRITE, uintptr(sender), buffer, 1)
			if n, _, _ := unix.RawSyscall(unix.SYS_READ, uintptr(receiver), buffer, 1); n == 1 {
				received++
			}
		}
		if took := time.Since(began); received == packets {
			least = min(least, float64(took/kerneltest.Instruction)/packets)
		}
	}
	return least
}

// countQueued returns how many packets the kernel queued for each receiving device, during f.
func countQueued(t *testing.T, f func()) map[string]int {
	t.Helper()
	const events = "/sys/kernel/tracing"
	if err := unix.Mount("tracefs", events, "tracefs", 0, ""); err != nil && err != unix.EBUSY {
		t.Fatal(err)
	}
	const event = events + "/events/net/netif_rx/"
	must.Succeed(t, os.WriteFile(event+"trigger", []byte("hist:keys=name"), 0o644))
	f()
	text := must.Get(os.ReadFile(event + "hist"))(t)
	must.Succeed(t, os.WriteFile(event+"trigger", []byte("!hist:keys=name"), 0o644))
	counts := map[string]int{}
	for _, m := range regexp.MustCompile(`name: (\S+)\s.*hitcount:\s+(\d+)`).FindAllStringSubmatch(string(text), -1) {
		counts[m[1]] = must.Get(strconv.Atoi(m[2]))(t)
	}
	return counts
}

// bpfStats is the file that lets the kernel count the runs of programs.
const bpfStats = "/proc/sys/kernel/bpf_stats_enabled"

// programStats returns the number of runs and the run time of each BPF program in the kernel, by name.
func programStats(t *testing.T) map[string]ebpf.ProgramStats {
	t.Helper()
	must.Succeed(t, os.WriteFile(bpfStats, []byte("1"), 0o644))
	all := map[string]ebpf.ProgramStats{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return all
		}
		must.Succeed(t, err)
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		must.Succeed(t, err)
		name, one := must.Get(p.Info())(t).Name, must.Get(p.Stats())(t)
		all[name] = ebpf.ProgramStats{RunCount: all[name].RunCount + one.RunCount, Runtime: all[name].Runtime + one.Runtime}
		p.Close()
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

// A kernel without netkit is refused with the reason and a remedy. With auto, its ports get veth devices.
func TestAKernelWithoutNetkitUsesVeth(t *testing.T) {
	b := newBed(t, options{nodes: 1, config: map[string]any{"workload_device": "netkit"}})
	if _, err := netdev.ChooseDevice(config.Netkit); err == nil {
		t.Skip("this kernel has netkit")
	}
	n := b.nodes[0]
	b.must(n.launch())
	err := n.agent.Wait()
	n.agent = nil
	if log := n.log(); err == nil || !strings.Contains(log, "workload_device: netkit: this kernel has no netkit devices with a MAC address of choice; use Linux 6.10 or later with CONFIG_NETKIT=y, or set workload_device: auto") {
		t.Errorf("the agent ended with %v and wrote:\n%s", err, log)
	}
	n.config["workload_device"] = "auto"
	b.state.Networks = []model.Network{{Name: "red", ID: 291, Subnets: subnets("10.1.0.0/16")}}
	b.state.Nodes = b.nodesOf(false)
	b.workload("x", "red", 0, "10.1.0.10")
	b.up()
	device := n.vif("x").Device
	if kind := must.Get(b.handle(n.ns).LinkByName(device))(t).Type(); kind != "veth" {
		t.Errorf("the port has a device of the kind %s, want veth", kind)
	}
	if log := n.log(); !strings.Contains(log, "new ports get veth devices") {
		t.Errorf("the log does not say that new ports get veth devices:\n%s", log)
	}
}
