package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6/nclient6"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// machine adds a workload that configures itself, and its port to the state. As for a virtual machine, the
// port has an existing device, and the agent does not configure eth0, the workload's end of it.
func (b *bed) machine(name, network string, node int, ips ...string) *workload {
	b.t.Helper()
	w := b.workload(name, network, node, ips...)
	w.port.Attach = model.Attachment{Device: "tap-" + name}
	b.state.Ports[len(b.state.Ports)-1] = w.port
	h, there := b.handle(b.nodes[node].ns), b.handle(w.ns)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = w.port.Attach.Device
	b.must(h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerHardwareAddr: w.port.MAC[:], PeerNamespace: netlink.NsFd(int(w.ns))}))
	b.t.Cleanup(func() { b.must(h.LinkDel(&netlink.Veth{LinkAttrs: attrs})) }) // the kernel deletes the devices of a deleted namespace later
	l, err := there.LinkByName("eth0")
	b.must(err)
	b.must(there.LinkSetUp(l))
	return w
}

// udhcpcScript configures a device as busybox's example scripts do, with the MTU and the classless routes.
// If RESOLV is set, it writes the DNS server into this file.
const udhcpcScript = `#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
set -e
busybox ip link set "$interface" mtu "$mtu"
busybox ip address replace "$ip/$mask" dev "$interface"
set -- $staticroutes
while [ $# -ge 2 ]; do
	busybox ip route replace "$1" via "$2" dev "$interface"
	shift 2
done
[ -z "$RESOLV" ] || printf 'nameserver %s\nsearch %s\n' "$dns" "$domain" > "$RESOLV"
`

// udhcpc configures a workload with busybox's DHCP client. tries is the maximum number of discover messages.
func (w *workload) udhcpc(tries int) error {
	return in(w.ns, func() error { return udhcpc(w.bed.dir, tries) })
}

// udhcpc configures eth0 of the thread's network namespace. dir is a directory for the script.
func udhcpc(dir string, tries int) error {
	script := filepath.Join(dir, "udhcpc.sh")
	if err := os.WriteFile(script, []byte(udhcpcScript), 0o700); err != nil {
		return err
	}
	out, err := exec.Command("busybox", "udhcpc", "-f", "-q", "-n", "-t", fmt.Sprint(tries), "-T", "3", "-i", "eth0", "-s", script, "-O", "mtu", "-O", "staticroutes").CombinedOutput()
	if err != nil {
		return fmt.Errorf("udhcpc: %w: %s", err, out)
	}
	return nil
}

// dhcp6 configures a workload with the DHCPv6 client of insomniacslk/dhcp. The workload's kernel takes the
// router and the MTU from a router advertisement, which it solicits when its device is set up.
func (w *workload) dhcp6() error {
	h := w.bed.handle(w.ns)
	l, err := h.LinkByName("eth0")
	if err != nil {
		return err
	}
	var gateway net.IP
	soon(w.bed.t, "the router in the advertisement", func() error {
		routes, err := h.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Dst: ipNet(netip.MustParsePrefix("::/0"))}, netlink.RT_FILTER_DST)
		if err != nil || len(routes) == 0 {
			return fmt.Errorf("the default routes are %v, %v", routes, err)
		}
		gateway = routes[0].Gw
		return nil
	})
	if want := "fe80::200:5eff:fe00:100"; gateway.String() != want {
		return fmt.Errorf("the IPv6 router is %s, want %s", gateway, want)
	}
	return in(w.ns, func() error {
		c, err := nclient6.New("eth0")
		if err != nil {
			return err
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		reply, err := c.RapidSolicit(ctx)
		if err != nil {
			return err
		}
		given := reply.Options.OneIANA().Options.OneAddress().IPv6Addr
		return h.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: given, Mask: net.CIDRMask(128, 128)}, Flags: 0x02 /* IFA_F_NODAD */})
	})
}

// nameServer answers all queries for IPv4 addresses in the node's namespace with 192.0.2.80.
func nameServer(t *testing.T, n *node) {
	t.Helper()
	var server net.PacketConn
	must.Succeed(t, in(n.ns, func() (err error) {
		server, err = net.ListenPacket("udp", "127.0.0.1:53")
		return err
	}))
	t.Cleanup(func() { server.Close() })
	go func() {
		for buffer := make([]byte, 4096); ; {
			size, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:size]) != nil {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 80}}}}
			}
			packed, _ := m.Pack()
			server.WriteTo(packed, from)
		}
	}()
}

// lookUp resolves a name in the workload, with a DNS server. It returns the addresses, sorted.
func (w *workload) lookUp(server, name string) (string, error) {
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (conn net.Conn, err error) {
		err = in(w.ns, func() error {
			conn, err = net.Dial("udp", net.JoinHostPort(server, "53"))
			return err
		})
		return conn, err
	}}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	all, err := r.LookupHost(ctx, name+".")
	slices.Sort(all)
	return strings.Join(all, " "), err
}

// discover returns a frame of the workload with a DHCP discover message. hardware is the client's MAC address in
// the message.
func (w *workload) discover(hardware model.MAC) []byte {
	w.bed.t.Helper()
	m, err := dhcpv4.NewDiscovery(hardware[:])
	w.bed.must(err)
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IPv4zero, DstIP: net.IPv4bcast}
	udp := &layers.UDP{SrcPort: dhcpv4.ClientPort, DstPort: dhcpv4.ServerPort}
	w.bed.must(udp.SetNetworkLayerForChecksum(ip))
	b := gopacket.NewSerializeBuffer()
	ethernet := &layers.Ethernet{SrcMAC: w.port.MAC[:], DstMAC: layers.EthernetBroadcast, EthernetType: layers.EthernetTypeIPv4}
	w.bed.must(gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ethernet, ip, udp, gopacket.Payload(m.ToBytes())))
	return b.Bytes()
}

// Workloads get their configuration from the agent, although their policy allows no DHCP. Then they reach a
// workload on another node.
func TestWorkloadsConfigureThemselvesByDHCP(t *testing.T) {
	needs(t, "busybox")
	b := newBed(t, options{config: map[string]any{"resolvers": []string{"127.0.0.1"}}})
	nameServer(t, b.nodes[0])
	for _, forwarding := range []model.Forwarding{model.L3, model.L2L3} {
		b.run(string(forwarding), func(t *testing.T) { workloadsConfigureThemselves(t, b, forwarding) })
	}
}

func workloadsConfigureThemselves(t *testing.T, b *bed, forwarding model.Forwarding) {
	b.state.Nodes = b.nodesOf(false)
	b.state.Networks = []model.Network{{Name: "red", ID: 291, Forwarding: forwarding, DHCP: true, DNS: addresses("10.1.0.2", "fd00:1::2"), Subnets: subnets("10.1.0.0/24", "10.2.0.0/24", "fd00:1::/64"), Policies: []string{"tcp"}}}
	b.state.Policies = []model.Policy{{Name: "tcp", Rules: []model.Rule{
		{Direction: model.Egress, Action: model.Allow, Protocol: "tcp"}, {Direction: model.Egress, Action: model.Allow, Protocol: "udp", Ports: "53"}, {Direction: model.Ingress, Action: model.Allow, Protocol: "tcp"},
	}}}
	x, other := b.machine("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.machine("other", "red", 0, "10.1.0.11")
	far := b.workload("far", "red", 1, "10.2.0.12", "fd00:1::12")
	b.up()
	must.Succeed(t, x.udhcpc(3))
	checkTransfer(x, far, 4, 1<<20)
	checkTransfer(far, x, 4, 1<<20)
	l, err := b.handle(x.ns).LinkByName("eth0")
	must.Succeed(t, err)
	if want := b.nodes[0].vif("x").MTU; l.Attrs().MTU != int(want) || want >= 1500 {
		t.Errorf("the workload's MTU is %d, want the port's, %d, below 1500", l.Attrs().MTU, want)
	}
	if drops := b.nodes[0].drops(); drops["spoofed_ip"] > 0 {
		t.Errorf("the node dropped %v, want no spoofed_ip", drops)
	}
	must.Succeed(t, x.dhcp6())
	checkTransfer(x, far, 6, 1<<20)
	for _, server := range []string{"10.1.0.2", "fd00:1::2"} {
		for name, want := range map[string]string{"far.red": "10.2.0.12 fd00:1::12", "www.example.net": "192.0.2.80"} {
			if got, err := x.lookUp(server, name); err != nil || got != want {
				t.Errorf("the answer of %s about %s is %q, error %v; want %q", server, name, got, err, want)
			}
		}
		if got, err := x.lookUp(server, "nothing.red"); err == nil || !strings.Contains(err.Error(), "no such host") {
			t.Errorf("the answer of %s about nothing.red is %q, error %v; want no such host", server, got, err)
		}
	}
	clientsWithAnotherMACGetNoAnswer(t, b, x)
	clientsWaitForTheAgent(t, b, other)
}

func clientsWithAnotherMACGetNoAnswer(t *testing.T, b *bed, x *workload) {
	x.sendFrame(x.discover(model.MAC{2, 0, 0, 9, 9, 9}))
	soon(t, "the problem in the status", func() error {
		s := answer(b.nodes[0], (*api.Client).Status)
		for _, p := range s.Problems {
			if p.Name == "x" && strings.Contains(p.Text, "the hardware address 02:00:00:09:09:09 in the message is not the port's") {
				return nil
			}
		}
		return fmt.Errorf("the problems are %+v", s.Problems)
	})
	b.nodes[0].wantMetric(`vrouter_dhcp_messages_total{port="x",result="foreign_mac"} 1`)
}

// While a port floods the agent with 50,000 discover messages a second, another port gets leases, and an answer to each DNS
// query. The test is long because the flood fills the kernel's queue of received packets (net.core.netdev_max_backlog): other
// tests on the same CPU would lose packets.
func TestAFloodOfDHCPStarvesNoOtherPort(t *testing.T) {
	must.Long(t)
	needs(t, "busybox")
	b := newBed(t, options{})
	b.state.Nodes = b.nodesOf(false)
	b.state.Networks = []model.Network{{Name: "red", ID: 291, Forwarding: model.L3, DHCP: true, DNS: addresses("10.1.0.2"), Subnets: subnets("10.1.0.0/24", "10.2.0.0/24")}}
	x, other := b.machine("x", "red", 0, "10.1.0.10"), b.machine("other", "red", 0, "10.1.0.11")
	b.workload("far", "red", 1, "10.2.0.12")
	b.up()
	const least, leases = 100_000, 5
	var served atomic.Bool
	var took time.Duration
	packets := func() uint64 { return b.nodes[0].vif("x").RxPackets }
	before, ended := packets(), make(chan error, 1)
	go func() {
		began, sent := time.Now(), 0
		ended <- in(x.ns, func() error {
			return rawFrames{frames: [][]byte{x.discover(x.port.MAC)}, while: func() bool {
				sent++
				return sent < least || !served.Load()
			}}.send("eth0")
		})
		took = time.Since(began)
	}()
	soon(t, "the flood begins", func() error {
		if n := packets() - before; n < least/100 {
			return fmt.Errorf("the port has sent %d messages", n)
		}
		return nil
	})
	for range leases {
		must.Succeed(t, other.udhcpc(3))
		if got, err := other.lookUp("10.1.0.2", "far.red"); err != nil || got != "10.2.0.12" {
			t.Errorf("during the flood, the answer to another port about far.red is %q, error %v", got, err)
		}
	}
	served.Store(true)
	must.Succeed(t, <-ended)
	sent := packets() - before
	perSecond := float64(sent) / took.Seconds()
	t.Logf("one port sent %d messages, %.0f a second, while another port got %d leases and answers of DNS", sent, perSecond, leases)
	if os.Getenv("WINDTUNNEL_TIMING_TESTS") != "" && perSecond < 50_000 {
		t.Errorf("the port sent %.0f messages a second, want at least 50000", perSecond)
	}
	if drops := b.nodes[0].drops(); drops["spoofed_ip"] > 0 {
		t.Errorf("the node dropped %v, want no spoofed_ip", drops)
	}
}

func clientsWaitForTheAgent(t *testing.T, b *bed, w *workload) {
	b.nodes[0].kill(syscall.SIGKILL)
	got := make(chan error, 1)
	go func() { got <- w.udhcpc(20) }()
	b.nodes[0].start()
	must.Succeed(t, <-got)
}
