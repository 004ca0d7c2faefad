package e2e

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// forgery is a tunnel packet that a process makes: what is behind the outer IP
// header, and what that header says.
type forgery struct {
	protocol int
	port     uint16
	shim     []byte // in front of the inner packet
	ethernet bool
}

// forgeries are one of each encapsulation, for network 1 of VNI 1001.
var forgeries = map[model.Encapsulation]forgery{
	model.MPLSoUDP: {unix.IPPROTO_UDP, 6635, []byte{0, 1, 0x21, 64}, false},
	model.MPLSoGRE: {unix.IPPROTO_GRE, 0, []byte{0, 0, 0x88, 0x47, 0, 1, 0x21, 64}, false},
	model.VXLAN:    {unix.IPPROTO_UDP, 4789, []byte{8, 0, 0, 0, 0, 3, 0xe9, 0}, true},
}

// send sends it from a namespace to a node, with a frame in it.
func (f forgery) send(t *testing.T, from *node, to netip.Addr, frame []byte) {
	t.Helper()
	if !f.ethernet {
		frame = frame[14:]
	}
	packet := append(append([]byte{}, f.shim...), frame...)
	from.bed.must(in(from.ns, func() error {
		if f.protocol == unix.IPPROTO_UDP {
			c, err := net.Dial("udp", netip.AddrPortFrom(to, f.port).String())
			if err != nil {
				return err
			}
			defer c.Close()
			raw, err := c.(*net.UDPConn).SyscallConn()
			if err == nil { // nodes send no checksum
				err = raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1) })
			}
			if err != nil {
				return err
			}
			if _, err = c.Write(packet); isRefused(err) {
				err = nil
			}
			return err
		}
		c, err := net.Dial("ip4:47", to.String())
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write(packet)
		return err
	}))
}

// isRefused: the node's guard shows as an error of the socket.
func isRefused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "operation not permitted")
}

// hearing opens a socket of the workload. The returned function tells whether a datagram comes. It waits long for one that the
// test wants.
func (w *workload) hearing(t *testing.T, port uint16) func(want bool) bool {
	t.Helper()
	var l net.PacketConn
	must.Succeed(t, in(w.ns, func() (err error) {
		l, err = net.ListenPacket("udp", netip.AddrPortFrom(w.ip(4), port).String())
		return err
	}))
	t.Cleanup(func() { l.Close() })
	return func(want bool) bool {
		return receive(l, 1, map[bool]time.Duration{true: 20 * time.Second, false: 300 * time.Millisecond}[want]) > 0
	}
}

// A process on a node has the node's underlay address. What it sends to another
// node's tunnel port must not get into a tenant, in any encapsulation.
func TestAProcessOnANodeDoesNotInjectIntoATenant(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for _, tcx := range []string{"auto", "off"} {
		t.Run("tcx="+tcx, func(t *testing.T) {
			b := newBed(t, options{config: map[string]any{"tcx": tcx}})
			b.state.Nodes = b.nodesOf(false)
			b.state.Networks = []model.Network{{Name: "red", ID: 1, VNI: 1001, Subnets: subnets("10.1.0.0/16")}}
			x, y := b.workload("x", "red", 0, "10.1.0.10"), b.workload("y", "red", 1, "10.1.0.11")
			b.up()
			must.Succeed(t, datagram(x, y, 4, 64))
			attacker, heard := b.nodes[1], x.hearing(t, 7777)
			frame := udpFrame(t, model.RouterMAC, model.RouterMAC, y.ip(4), x.ip(4), 7777, []byte("forged"))
			for encap, f := range forgeries {
				f.send(t, attacker, b.nodes[0].v4, frame)
				if heard(false) {
					t.Errorf("%s: a process's packet was delivered to a workload", encap)
				}
			}
			if n := attacker.drops()["forged_tunnel"]; n != uint64(len(forgeries)) {
				t.Errorf("%d drops under forged_tunnel, want %d", n, len(forgeries))
			}
			checkTransfer(x, y, 4, 1<<20)
		})
	}
}

// A node that is not what it should be, without a guard, may send with the
// addresses that it has in a network, and with those alone.
func TestANodeDoesNotSendAsAWorkloadOfAnotherNode(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{nodes: 3, bare: 1})
	for _, encap := range encaps {
		for _, forwarding := range []model.Forwarding{model.L3, model.L2} {
			b.run(string(encap)+"/"+string(forwarding), func(t *testing.T) {
				x, y, z := b.threePorts(encap, forwarding)
				b.up()
				attacker, heard := b.nodes[2], x.hearing(t, 7777)
				f := forgeries[encap]
				dst := model.RouterMAC
				if forwarding == model.L2 {
					f = f.ofEthernet()
					dst = x.port.MAC
				}
				send := func(from *workload, want bool) bool {
					src := model.RouterMAC
					if forwarding == model.L2 {
						src = from.port.MAC
					}
					f.send(t, attacker, b.nodes[0].v4, udpFrame(t, src, dst, from.ip(4), x.ip(4), 7777, []byte("hello")))
					return heard(want)
				}
				if !send(z, true) {
					t.Errorf("the node's own workload was not heard: %v", b.nodes[0].drops())
				}
				if send(y, false) || send(x, false) {
					t.Error("a node sent as another node's workload")
				}
				if n := b.nodes[0].drops()["forged_source"]; n != 2 {
					t.Errorf("%d drops under forged_source, want 2: %v", n, b.nodes[0].drops())
				}
			})
		}
	}
}

// ofEthernet is the forgery with a frame in it: the label is the bridged one.
func (f forgery) ofEthernet() forgery {
	if !f.ethernet {
		f.shim = append([]byte{}, f.shim...)
		f.shim[len(f.shim)-2] = 0x31 // label 19 in place of 18
		f.ethernet = true
	}
	return f
}

// The nodes speak MPLS over UDP with each other. Nothing else gets in.
func TestAnEncapsulationThatWasNotAgreedIsRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{nodes: 3, bare: 1}) // a node accepts the encapsulations of earlier tests for a time
	x, _, z := b.threePorts(model.MPLSoUDP, model.L3)
	b.up()
	heard := x.hearing(t, 7777)
	frame := udpFrame(t, model.RouterMAC, model.RouterMAC, z.ip(4), x.ip(4), 7777, []byte("hello"))
	for encap, f := range forgeries {
		f.send(t, b.nodes[2], b.nodes[0].v4, frame)
		if got := heard(encap == model.MPLSoUDP); got != (encap == model.MPLSoUDP) {
			t.Errorf("%s: delivered %v", encap, got)
		}
	}
	// If no node uses an encapsulation, the host's stack gets its packets.
	if n := b.nodes[0].drops()["wrong_encapsulation"]; n != 0 {
		t.Errorf("%d drops under wrong_encapsulation, want 0", n)
	}
}

// A port that may send from further prefixes does so from another node too.
func TestAPortMaySendFromItsFurtherPrefixes(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{nodes: 3, bare: 1})
	x, _, z := b.threePorts(model.MPLSoUDP, model.L3)
	for i := range b.state.Ports {
		if b.state.Ports[i].Name == "z" {
			b.state.Ports[i].AllowSources = subnets("10.99.0.0/16")
		}
	}
	b.up()
	heard := x.hearing(t, 7777)
	for from, want := range map[string]bool{"10.99.3.4": true, "10.98.3.4": false} {
		forgeries[model.MPLSoUDP].send(t, b.nodes[2], b.nodes[0].v4,
			udpFrame(t, z.port.MAC, model.RouterMAC, netip.MustParseAddr(from), x.ip(4), 7777, []byte("hello")))
		if got := heard(want); got != want {
			t.Errorf("from %s: delivered %v, want %v: %v", from, got, want, b.nodes[0].drops())
		}
	}
}

// A tunnel packet with a VLAN tag is not for the untagged fabric device.
func TestATaggedTunnelPacketIsNotDelivered(t *testing.T) {
	t.Parallel()
	for _, xdp := range []string{"auto", "off"} {
		t.Run("xdp="+xdp, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, options{nodes: 3, bare: 1})
			x, _, z := b.threePorts(model.MPLSoUDP, model.L3)
			for _, n := range b.nodes {
				n.config["xdp"] = xdp
			}
			b.up()
			heard := x.hearing(t, 7777)
			inner := udpFrame(t, model.RouterMAC, model.RouterMAC, z.ip(4), x.ip(4), 7777, []byte("hello"))[14:]
			outer := udpFrame(t, model.MAC{2, 0xfa, 0, 0, 0, 3}, model.MAC{2, 0xfa, 0, 0, 0, 1}, b.nodes[2].v4, b.nodes[0].v4, 6635, append([]byte{0, 1, 0x21, 64}, inner...))
			outer = withSourcePort(outer, 34, 50000)
			b.nodes[2].sendFrame("fab", 0, outer)
			if !heard(true) {
				t.Fatalf("the untagged packet was not heard: %v", b.nodes[0].drops())
			}
			// The workload's kernel drops a tagged frame, so the test also counts the packets to it.
			sent := func() uint64 { return b.nodes[0].vif("x").TxPackets }
			before := sent()
			b.nodes[2].sendFrame("fab", 0, tagged(outer, 5))
			if heard(false) || sent() != before {
				t.Errorf("a tagged tunnel packet was delivered: %d packets to the workload before it, %d after it", before, sent())
			}
		})
	}
}

// TestAForgedErrorDoesNotShrinkATunnel: a host on the underlay sends "fragmentation
// needed" to a node, and quotes a tunnel packet that the node did not send.
func TestAForgedErrorDoesNotShrinkATunnel(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{nodes: 3, bare: 1})
	x, y, _ := b.threePorts(model.MPLSoUDP, model.L3)
	b.up()
	outer := udpFrame(t, model.MAC{2, 0xfa, 0, 0, 0, 1}, model.MAC{2, 0xfa, 0, 0, 0, 2}, b.nodes[0].v4, b.nodes[1].v4, 6635, make([]byte, 1400))
	quote := withSourcePort(outer, 34, 50000)[14 : 14+28]
	b.must(in(b.nodes[2].ns, func() error {
		c, err := net.Dial("ip4:icmp", b.nodes[0].v4.String())
		if err != nil {
			return err
		}
		defer c.Close()
		tooBig := icmp.Message{Type: ipv4.ICMPTypeDestinationUnreachable, Code: 4, Body: &icmp.RawBody{Data: append([]byte{0, 0, 576 >> 8, 576 & 0xff}, quote...)}}
		message, err := tooBig.Marshal(nil)
		if err != nil {
			return err
		}
		_, err = c.Write(message)
		return err
	}))
	checkTransfer(x, y, 4, 1<<20)
	for _, h := range table(b.nodes[0], (*api.Client).Nexthops) {
		if h.LearnedMTU != 0 {
			t.Errorf("%s has learned an MTU of %d", h.Name, h.LearnedMTU)
		}
	}
}
