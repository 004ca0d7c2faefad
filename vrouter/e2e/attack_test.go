package e2e

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// The tests of attack*_test.go are named for what must not happen. The table of
// docs/security.md names them.

// itself is the node as an end of traffic on the underlay.
func (n *node) itself() *workload {
	return &workload{bed: n.bed, ns: n.ns, port: model.Port{Name: "node " + n.name, IPs: []netip.Addr{n.v4, n.v6}}}
}

// threePorts gives network red x on the first node, y on the second and z on the third.
func (b *bed) threePorts(encap model.Encapsulation, forwarding model.Forwarding) (x, y, z *workload) {
	b.state.Nodes = b.nodesOf(false, encap)
	b.state.Networks = []model.Network{{Name: "red", ID: 1, VNI: 1001, Forwarding: forwarding, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	x = b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	y = b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
	z = b.workload("z", "red", 2, "10.1.0.12", "fd00:1::12")
	return x, y, z
}

// open is a policy that allows everything, which a node's own port needs to be
// reached.
var open = model.Policy{Name: "open", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Allow}, {Direction: model.Egress, Action: model.Allow}}}

// A packet that a node received through a tunnel and forwards on the underlay
// has what that node's XDP left in its buffer. The next node must not believe it.
func TestAForwardedPacketIsNotTreatedAsDecapsulated(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{nodes: 3})
	router, server := b.nodes[1], b.nodes[2]
	for _, encap := range encaps {
		b.run(string(encap), func(t *testing.T) {
			x, _, _ := b.threePorts(encap, model.L3)
			b.state.Policies = []model.Policy{open}
			b.state.Ports = append(b.state.Ports, model.Port{
				Name: "router", Network: "red", Node: router.name, MAC: model.MAC{2, 0, 0, 0, 9, 9}, IPs: addresses("10.1.0.5"),
				Attach: model.Attachment{Host: true}, Policies: []string{"open"}, AllowSources: subnets("172.30.0.0/24"),
			})
			b.state.Routes = []model.Route{{Network: "red", Prefix: netip.PrefixFrom(server.v4, 32), Via: []model.Via{{Port: "router"}}}}
			b.up()
			router.exec("sysctl -w net.ipv4.ip_forward=1")
			server.ip("route replace " + x.ip(4).String() + " via " + router.v4.String())
			for range 5 {
				checkTransfer(x, server.itself(), 4, 1<<20)
				checkTransfer(server.itself(), x, 4, 1<<20)
			}
			if drops := server.drops(); drops["no_nexthop"]+drops["reflected"]+drops["no_route"] != 0 {
				t.Errorf("the server's node took plain packets for a tunnel's: %v", drops)
			}
		})
	}
}

// Plain traffic between nodes passes beside the overlay's.
func TestPlainTrafficOfNodesIsNotDropped(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := sharedBed(t, options{})
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	traffic := load(t, x, y)
	traffic.run(func() error {
		for traffic.ctx.Err() == nil {
			if err := transfer(y, x, 4, 4<<20); err != nil {
				return err
			}
		}
		return nil
	})
	for range 10 {
		for _, ends := range [][2]*node{{b.nodes[0], b.nodes[1]}, {b.nodes[1], b.nodes[0]}} {
			checkTransfer(ends[0].itself(), ends[1].itself(), 4, 1<<20)
		}
	}
	traffic.end(t)
	for _, n := range b.nodes {
		if drops := n.drops(); drops["no_nexthop"] != 0 {
			t.Errorf("node %s: %v", n.name, drops)
		}
	}
}

// A process on the node may mark its packets as the programs mark their own.
// Through the node's port such a packet must not leave without a tunnel.
func TestAMarkOfAProcessDoesNotSendATenantsPacketBare(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	x, _ := pair(b, model.L3, false, model.MPLSoUDP)
	own := model.Port{Name: "own", Network: "red", Node: b.nodes[0].name, MAC: model.MAC{2, 0, 0, 0, 9, 9}, IPs: addresses("10.1.0.5"), Attach: model.Attachment{Host: true}}
	b.state.Ports = append(b.state.Ports, own)
	b.apply()
	own0 := &workload{bed: b, ns: b.nodes[0].ns, port: own}
	secret := udpFrame(t, own.MAC, model.RouterMAC, own.IPs[0], netip.MustParseAddr("10.1.0.11"), 4000, []byte("tenant secret"))
	watch := watchFor(t, b.nodes[1].ns, "fab", []byte("tenant secret"))
	for nexthop := range 32 {
		b.nodes[0].sendFrame(b.nodes[0].hostDevice(), 0x80000000|nexthop, secret)
	}
	for member := range 4 {
		b.nodes[0].sendFrame(b.nodes[0].hostDevice(), 0x76721000|member, secret)
	}
	for _, frame := range watch(300 * time.Millisecond) {
		isXDPs := bytes.HasPrefix(frame, []byte{2, 0, 0, 0, 0, 0}) // decapsulated by the node's own program
		if bytes.Equal(frame[26:30], own.IPs[0].AsSlice()) && !isXDPs {
			t.Errorf("a tenant's packet is on the underlay without a tunnel: %x", frame)
		}
	}
	if err := datagram(own0, x, 4, 64); err != nil {
		t.Errorf("the node's own port: %v", err)
	}
}

// hostDevice is the device by which the node is in a network.
func (n *node) hostDevice() (name string) {
	n.bed.t.Helper()
	n.bed.must(in(n.ns, func() error {
		all, err := net.Interfaces()
		for _, d := range all {
			if strings.HasPrefix(d.Name, "vrh-") {
				name = d.Name
			}
		}
		return err
	}))
	return name
}

// udpFrame is a UDP datagram from port 4000 in an Ethernet frame.
func udpFrame(t testing.TB, src, dst model.MAC, from, to netip.Addr, port uint16, data []byte) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: src[:], DstMAC: dst[:], EthernetType: layers.EthernetTypeIPv4}
	udp := &layers.UDP{SrcPort: 4000, DstPort: layers.UDPPort(port)}
	if from.Is6() {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolUDP, HopLimit: 64, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
		udp.SetNetworkLayerForChecksum(ip)
		return serialized(t, eth, ip, udp, gopacket.Payload(data))
	}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	udp.SetNetworkLayerForChecksum(ip)
	return serialized(t, eth, ip, udp, gopacket.Payload(data))
}

func serialized(t testing.TB, all ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	must.Succeed(t, gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...))
	return slices.Clone(buf.Bytes())
}

// watchFor watches a device for frames with some bytes in them. The function
// that it returns waits so long, and returns those that came in.
func watchFor(t testing.TB, ns netns.NsHandle, device string, part []byte) func(time.Duration) [][]byte {
	t.Helper()
	fd := packetSocket(t, ns, device, unix.SOCK_RAW)
	return func(wait time.Duration) (found [][]byte) {
		time.Sleep(wait)
		buf := make([]byte, 2048)
		for {
			n, from, err := unix.Recvfrom(fd, buf, 0)
			if err != nil {
				return found
			}
			if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING && bytes.Contains(buf[:n], part) {
				found = append(found, slices.Clone(buf[:n]))
			}
		}
	}
}

// packetSocket returns a socket that receives the packets of a device in both directions. kind is
// SOCK_RAW or SOCK_DGRAM (packet(7)).
func packetSocket(t testing.TB, ns netns.NsHandle, device string, kind int) (fd int) {
	t.Helper()
	const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
	if err := in(ns, func() error {
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		t.Cleanup(func() { unix.Close(fd) })
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: d.Index})
	}); err != nil {
		t.Fatalf("open a packet socket on device %s: %v", device, err)
	}
	return fd
}
