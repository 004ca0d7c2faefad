package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/model"
)

// icmp6 is an ICMPv6 message in a frame, from a link-local address if from is
// not valid.
func (w *workload) icmp6(t testing.TB, from, to netip.Addr, hops uint8, kind uint8, body []byte) []byte {
	t.Helper()
	dst := w.multicastMAC(to)
	eth := &layers.Ethernet{SrcMAC: w.port.MAC[:], DstMAC: dst[:], EthernetType: layers.EthernetTypeIPv6}
	ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: hops, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)}
	icmp.SetNetworkLayerForChecksum(ip)
	return serialized(t, eth, ip, icmp, gopacket.Payload(body))
}

func (w *workload) multicastMAC(to netip.Addr) model.MAC {
	a := to.As16()
	if to.IsMulticast() {
		return model.MAC{0x33, 0x33, a[12], a[13], a[14], a[15]}
	}
	return model.RouterMAC
}

// linkLocal is the workload's address by its MAC (RFC 4291, appendix A).
func (w *workload) linkLocal() netip.Addr {
	m := w.port.MAC
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

var allNodes = netip.MustParseAddr("ff02::1")

// advertisement is a router's: default route for 30 minutes, and the prefix
// fd66::/64 for addresses.
func (w *workload) advertisement(t testing.TB) []byte {
	body := []byte{64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0,
		3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 14, 16, 0, 0, 0, 0, 0xfd, 0x66, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		1, 1, w.port.MAC[0], w.port.MAC[1], w.port.MAC[2], w.port.MAC[3], w.port.MAC[4], w.port.MAC[5]}
	return w.icmp6(t, w.linkLocal(), allNodes, 255, 134, body)
}

// A tenant's router advertisement must not become the route of the node that is
// in the network too, nor of another workload, unless that one is to accept it.
func TestARouterAdvertisementDoesNotTakeARoute(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	b.state.Nodes = b.nodesOf(false, model.MPLSoUDP)
	b.state.Networks = []model.Network{{Name: "red", ID: 1, Forwarding: model.L2L3, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	rogue := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
	listener := b.workload("z", "red", 1, "10.1.0.12")
	for i := range b.state.Ports {
		b.state.Ports[i].Router = b.state.Ports[i].Name == rogue.port.Name // else its advertisements go nowhere
		b.state.Ports[i].Attach.AcceptRA = b.state.Ports[i].Name == listener.port.Name
	}
	b.state.Policies = []model.Policy{open}
	for i, n := range b.nodes {
		b.state.Ports = append(b.state.Ports, model.Port{
			Name: "own-" + n.name, Network: "red", Node: n.name, MAC: model.MAC{2, 0, 0, 0, 9, byte(i)},
			IPs: addresses("10.1.0." + string(rune('5'+i))), Attach: model.Attachment{Host: true}, Policies: []string{"open"},
		})
	}
	b.up()
	for range 3 {
		rogue.sendFrame(rogue.advertisement(t))
		time.Sleep(50 * time.Millisecond)
	}
	soon(t, "the workload that accepts it has the address", func() error {
		return mustContain(testprogram.Output(t, "ip -n "+listener.port.Attach.Netns+" -6 address"), "fd66::")
	})
	for _, space := range []string{b.nodes[0].space, b.nodes[1].space, b.name + "-y"} {
		if text := testprogram.Output(t, "ip -n "+space+" -6 route") + testprogram.Output(t, "ip -n "+space+" -6 address"); strings.Contains(text, "fd66::") || strings.Contains(text, "proto ra") {
			t.Errorf("%s took a route or an address from a tenant:\n%s", space, text)
		}
	}
}

func mustContain(text, part string) error {
	if !strings.Contains(text, part) {
		return fmt.Errorf("%q is missing in:\n%s", part, text)
	}
	return nil
}

// behindOptions is a UDP datagram behind a hop-by-hop header with padding.
func (w *workload) behindOptions(t testing.TB, dst model.MAC, from, to netip.Addr, port uint16, data []byte) []byte {
	frame := udpFrame(t, w.port.MAC, dst, from, to, port, data)
	options := []byte{17, 0, 1, 4, 0, 0, 0, 0}
	frame = append(append(append([]byte{}, frame[:54]...), options...), frame[54:]...)
	frame[20] = 0 // hop-by-hop
	frame[19] += byte(len(options))
	return frame
}

// A rule that denies an address is not passed by with a link-local source, or
// with none, also not behind a header of options. Such packets do not leave the
// link.
func TestALinkLocalSourceDoesNotPassADenial(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	for _, forwarding := range []model.Forwarding{model.L3, model.L2, model.L2L3} {
		b.run(string(forwarding), func(t *testing.T) {
			b.state.Nodes = b.nodesOf(false, model.MPLSoUDP)
			b.state.Networks = []model.Network{{Name: "red", ID: 1, Forwarding: forwarding, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
			x, y := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
			b.state.Policies = []model.Policy{{Name: "not-x", Rules: []model.Rule{
				{Direction: model.Ingress, Action: model.Deny, Remote: netip.PrefixFrom(x.ip(6), 128)},
				{Direction: model.Ingress, Action: model.Allow},
			}}}
			b.state.Ports[1].Policies = []string{"not-x"}
			b.up()
			dst := model.RouterMAC
			if forwarding != model.L3 {
				dst = y.port.MAC
			}
			secret := []byte("past the denial")
			watch := watchFor(t, y.ns, "eth0", secret)
			for _, from := range []netip.Addr{x.ip(6), x.linkLocal(), netip.IPv6Unspecified(), netip.MustParseAddr("fe80::1234")} {
				for _, mac := range []model.MAC{dst, model.RouterMAC} {
					x.sendFrame(udpFrame(t, x.port.MAC, mac, from, y.ip(6), 7777, secret))
					x.sendFrame(x.behindOptions(t, mac, from, y.ip(6), 7777, secret))
					echo := x.icmp6(t, from, y.ip(6), 64, 128, append([]byte{0, 1, 0, 1}, secret...))
					copy(echo, mac[:])
					x.sendFrame(echo)
					unreachable := x.icmp6(t, from, y.ip(6), 64, 1, append([]byte{0, 0, 0, 0}, secret...))
					copy(unreachable, mac[:])
					x.sendFrame(unreachable)
				}
			}
			for _, frame := range watch(300 * time.Millisecond) {
				t.Errorf("it got through: %x", frame)
			}
			if err := datagram(y, x, 6, 64); err != nil {
				t.Errorf("what y begins: %v", err)
			}
		})
	}
}

// The first fragment of a datagram to a denied port ends within a header of options. The padding
// of its frame has the rest and a header to an allowed port. The kernel that receives the fragments
// ignores the padding.
func TestPaddingDoesNotPassAPolicy(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	for _, forwarding := range []model.Forwarding{model.L3, model.L2L3} {
		for _, encap := range []model.Encapsulation{model.Direct, model.VXLAN} {
			b.run(fmt.Sprintf("%s/%s", forwarding, encap), func(t *testing.T) {
				b.state.Policies = []model.Policy{{Name: "web", Rules: []model.Rule{
					{Direction: model.Egress, Action: model.Allow},
					{Direction: model.Ingress, Action: model.Allow, Protocol: "udp", Ports: "80"},
				}}}
				var x, y *workload
				if encap == model.Direct {
					x, y = directPair(b, forwarding, model.VXLAN)
				} else {
					x, y = pair(b, forwarding, false, encap)
				}
				b.state.Ports[1].Policies = []string{"web"}
				b.apply()
				sockets := map[uint16]net.PacketConn{}
				for _, port := range []uint16{22, 80} {
					b.must(in(y.ns, func() (err error) {
						sockets[port], err = net.ListenPacket("udp", netip.AddrPortFrom(y.ip(6), port).String())
						return err
					}))
					defer sockets[port].Close()
				}
				dst := model.RouterMAC
				if forwarding != model.L3 {
					dst = y.port.MAC
				}
				send := func(round int) {
					for i, port := range []uint16{80, 22} {
						options := []byte{60, 1, 0x1e, 12, 16: 17, 18: 0x1e, 19: 4, 23: 0} // 2 headers with an experimental option (RFC 4727)
						part := func(id int, offset, more byte, data, padding []byte) []byte {
							frame := udpFrame(t, x.port.MAC, dst, x.ip(6), y.ip(6), port, nil)[:54]
							frame[19], frame[20] = byte(8+len(data)), 44
							return slices.Concat(frame, []byte{60, 0, 0, offset | more, 0, 0, byte(round), byte(id)}, data, padding)
						}
						datagram := func(port uint16, payload string) []byte {
							return udpFrame(t, x.port.MAC, dst, x.ip(6), y.ip(6), port, []byte(payload))[54:]
						}
						rest := append(slices.Clone(options[8:]), datagram(port, "padding")...)
						whole := append(slices.Clone(options), datagram(port, "headers")...)
						x.sendFrame(part(2*i, 0, 1, options[:8], append(slices.Clone(options[8:]), datagram(80, "padding")...)), part(2*i, 8, 0, rest, nil))
						x.sendFrame(part(2*i+1, 0, 1, whole[:32], nil), part(2*i+1, 32, 0, whole[32:], nil))
					}
				}
				read := func(port uint16) string {
					sockets[port].SetReadDeadline(time.Now().Add(300 * time.Millisecond))
					payload := make([]byte, 64)
					n, _, _ := sockets[port].ReadFrom(payload)
					return string(payload[:n])
				}
				got := ""
				for round := 0; got == "" && round < 60; round++ { // a second fragment can overtake the first, and is dropped
					send(round)
					got = read(80)
				}
				for must.Equal(t, "headers", got); got == "headers"; got = read(80) {
				}
				must.Equal(t, "", got)
				must.Equal(t, "", read(22))
			})
		}
	}
}

// behindDestinationOptions puts a header without meaning in front of an ICMPv6
// message.
func behindDestinationOptions(frame []byte) []byte {
	options := []byte{58, 0, 1, 4, 0, 0, 0, 0}
	frame = append(append(append([]byte{}, frame[:54]...), options...), frame[54:]...)
	frame[20] = 60
	frame[19] += byte(len(options))
	return frame
}

// A workload must not pose as a router, as a DHCP server, or as another
// workload, unless it is a router.
func TestAWorkloadDoesNotPoseAsARouterOrNeighbour(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	for _, forwarding := range []model.Forwarding{model.L2, model.L2L3} {
		for _, router := range []bool{false, true} {
			b.run(fmt.Sprintf("%s/router=%v", forwarding, router), func(t *testing.T) {
				b.state.Nodes = b.nodesOf(false, model.MPLSoUDP)
				b.state.Networks = []model.Network{{Name: "red", ID: 1, Forwarding: forwarding, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
				x, y := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
				local := b.workload("z", "red", 0, "10.1.0.12", "fd00:1::12")
				b.state.Ports[0].Router = router
				b.up()
				target := func(a netip.Addr, mark string) []byte { // an advertisement's or redirect's body
					return append(append([]byte{0x20, 0, 0, 0}, a.AsSlice()...), mark...)
				}
				everyone := model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
				forged := map[string][]byte{
					"an advertisement of a router": x.icmp6(t, x.linkLocal(), allNodes, 255, 134, append(make([]byte, 12), "evil-ra-"...)),
					"a redirect":                   x.icmp6(t, x.linkLocal(), allNodes, 255, 137, target(y.ip(6), "evil-redirect")),
					"an answer of DHCP":            withSourcePort(udpFrame(t, x.port.MAC, everyone, x.ip(4), netip.MustParseAddr("255.255.255.255"), 68, []byte("evil-dhcp4")), 34, 67),
					"an answer of DHCPv6":          withSourcePort(udpFrame(t, x.port.MAC, y.port.MAC, x.ip(6), y.ip(6), 546, []byte("evil-dhcp6")), 54, 547),
					"a neighbour's advertisement":  x.icmp6(t, x.ip(6), allNodes, 255, 136, target(y.ip(6), "evil-na")),
					"the same, behind a header":    behindDestinationOptions(x.icmp6(t, x.ip(6), allNodes, 255, 136, target(y.ip(6), "evil-hidden-na"))),
					"of another, from its link":    x.icmp6(t, x.linkLocal(), allNodes, 255, 136, target(local.ip(6), "evil-ll-na")),
				}
				watches := map[*workload]func(time.Duration) [][]byte{}
				for _, w := range []*workload{y, local} {
					watches[w] = watchFor(t, w.ns, "eth0", nil)
				}
				for w, watch := range watches {
					marks := map[string]bool{
						"evil-ra-": router, "evil-redirect": router, "evil-dhcp4": router, "evil-na": false,
						"evil-hidden-na": false, "evil-ll-na": false, "evil-dhcp6": router && w == y, "good-na": true,
					}
					var got []byte
					soon(t, "the frames at "+w.port.Name, func() error {
						for _, frame := range forged { // again, because a flood of another test may fill the kernel's backlog
							x.sendFrame(frame)
						}
						x.sendFrame(x.icmp6(t, x.ip(6), allNodes, 255, 136, target(x.ip(6), "good-na"))) // its own, after all others
						for _, frame := range watch(0) {
							got = append(got, frame...)
						}
						for mark, want := range marks {
							if want && !bytes.Contains(got, []byte(mark)) {
								return fmt.Errorf("%s has not arrived", mark)
							}
						}
						return nil
					})
					for mark, want := range marks {
						if bytes.Contains(got, []byte(mark)) != want {
							t.Errorf("%s at %s: %v, want %v", mark, w.port.Name, !want, want)
						}
					}
				}
				if n := b.nodes[0].drops()["rogue_router"]; router != (n == 0) {
					t.Errorf("%d drops under rogue_router", n)
				}
			})
		}
	}
}

// withSourcePort sets the UDP source port at `at`, and takes the checksum off.
func withSourcePort(frame []byte, at int, port uint16) []byte {
	binary.BigEndian.PutUint16(frame[at:], port)
	frame[at+6], frame[at+7] = 0, 0
	return frame
}

// tagged puts a VLAN tag into a frame.
func tagged(frame []byte, vlan byte) []byte {
	return append(append(append([]byte{}, frame[:12]...), 0x81, 0, 0, vlan), frame[12:]...)
}

// A workload's tag must not choose the underlay's VLAN.
func TestAWorkloadsTagDoesNotReachTheUnderlay(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	for _, forwarding := range []model.Forwarding{model.L3, model.L2} {
		b.run(string(forwarding), func(t *testing.T) {
			x, y := pair(b, forwarding, false, model.MPLSoUDP)
			must.Succeed(t, datagram(x, y, 4, 64))
			dst := y.port.MAC
			if forwarding == model.L3 {
				dst = model.RouterMAC
			}
			secret := []byte("behind a tag")
			watch := watchFor(t, b.nodes[1].ns, "fab", secret)
			for range 3 {
				x.sendFrame(tagged(udpFrame(t, x.port.MAC, dst, x.ip(4), y.ip(4), 7777, secret), 5))
			}
			for _, frame := range watch(300 * time.Millisecond) {
				t.Errorf("it is on the underlay: %x", frame)
			}
			if n := b.nodes[0].drops()["vlan"]; n != 3 {
				t.Errorf("%d drops under vlan, want 3", n)
			}
		})
	}
}
