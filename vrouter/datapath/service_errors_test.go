package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// portUnreachable is an ICMP error with the beginning of a packet.
func portUnreachable(t testing.TB, from, to netip.Addr, quoted []byte) []byte {
	if from.Is4() {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
		return serialize(t, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeDestinationUnreachable, layers.ICMPv4CodePort)}, gopacket.Payload(quoted))
	}
	ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolICMPv6, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeDestinationUnreachable, layers.ICMPv6CodePortUnreachable)}
	icmp.SetNetworkLayerForChecksum(ip)
	return serialize(t, ip, icmp, gopacket.Payload(append(make([]byte, 4), quoted...)))
}

// checkError checks the addresses and the checksums of an ICMP error, and the packet that it quotes: the quote is the
// beginning of a packet, whose header has one hop less if it has been routed.
func checkError(t testing.TB, what string, ip []byte, from, to netip.Addr, packet []byte, routed bool) {
	t.Helper()
	source, destination, header := ip[12:16], ip[16:20], 20
	if ip[0]>>4 == 6 {
		source, destination, header = ip[8:24], ip[24:40], 40
	}
	if routed {
		packet = withHops(packet, 63)
	}
	if !checksumIsRight(ip) || header == 20 && sum16(ip[:20]) != 0xffff {
		t.Errorf("%s: a checksum of %x is wrong", what, ip)
	}
	if !bytes.Equal(source, from.AsSlice()) || !bytes.Equal(destination, to.AsSlice()) {
		t.Errorf("%s: the error has the addresses %x and %x, want %s and %s", what, source, destination, from, to)
	}
	if quoted := ip[header+8:]; len(quoted) < header+8 || !bytes.HasPrefix(packet, quoted) {
		t.Errorf("%s: the error quotes\n%x, want the beginning of\n%x", what, quoted, packet)
	}
}

// Errors about packets between a client and a service quote these packets as their sender knows them, whether the
// errors come from the node, a router, the backend or the client.
func TestErrorsQuoteThePacketsOfServicesAsTheirSendersKnowThem(t *testing.T) {
	for name, a := range families {
		router := map[bool]netip.Addr{true: gateway4, false: gateway6}[a.client.Is4()]
		for _, port := range []uint16{80, 8080} {
			for _, policy := range []bool{false, true} {
				for _, protocol := range []uint8{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
					what := fmt.Sprint(name, " port ", port, " policy ", policy, " protocol ", protocol)
					r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
						withServicesAnd(policy, at(a.backend, port))(f)
						f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(a.other, a.other.BitLen())}] = layout.Route{Nexthop: nhTunnel, Label: 18}
					})
					r.setService(t, a.service, at(a.backend, port))
					sent := segment{at(a.client, 40000), at(a.service, 80), protocol, "S"}.packet(t)
					answer := segment{at(a.backend, port), at(a.client, 40000), protocol, "AS"}.packet(t)
					atBackend, atClient := r.leave(t, sent), r.arrive(t, answer)
					for _, whole := range []bool{false, true} {
						n := map[bool]int{true: 20, false: 40}[a.client.Is4()] + 8
						quote := func(b []byte) []byte {
							if whole {
								return b
							}
							return b[:n]
						}
						checkError(t, what+" from the backend", r.arrive(t, portUnreachable(t, a.backend, a.client, quote(atBackend))), a.service, a.client, sent, true)
						checkError(t, what+" from a router", r.arrive(t, portUnreachable(t, a.other, a.client, quote(atBackend))), a.other, a.client, sent, true)
						checkError(t, what+" from the client", r.leave(t, portUnreachable(t, a.client, a.service, quote(atClient))), a.client, a.backend, answer, false)
					}
					for cause, ip := range map[string][]byte{
						"hop limit": withHops(sent, 1),
						"too big":   segment{at(a.client, 40000), at(a.service, 80), protocol, "A"}.packetOf(t, string(make([]byte, 1450))),
					} {
						code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, ip))
						if code != actRedirect {
							t.Fatalf("%s, %s: action %d", what, cause, code)
						}
						checkError(t, what+", "+cause, out[14:], router, a.client, ip, false)
					}
				}
			}
		}
	}
}

// withHops returns a packet with another TTL or hop limit.
func withHops(ip []byte, hops byte) []byte {
	ip = slices.Clone(ip)
	if ip[0]>>4 == 6 {
		ip[7] = hops
		return ip
	}
	ip[8], ip[10], ip[11] = hops, 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^sum16(ip[:20]))
	return ip
}

// A workload that is its own backend gets errors about both directions.
func TestErrorsOfAWorkloadThatReachesItselfComeBack(t *testing.T) {
	for name, a := range families {
		for _, protocol := range []uint8{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
			r := newRig(t, model.MPLSoUDP, false, withServices)
			r.setService(t, a.service, at(a.client, 8080))
			loop := func(ip []byte) []byte {
				t.Helper()
				code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, ip))
				if code != actRedirect || !bytes.Equal(out[:12], append(macA[:], model.RouterMAC[:]...)) {
					t.Fatalf("%s: action %d, frame %x", name, code, out)
				}
				return out[14:]
			}
			for _, sent := range [][]byte{
				segment{at(a.client, 40000), at(a.service, 80), protocol, "S"}.packet(t),
				segment{at(a.client, 8080), at(a.service, 40000), protocol, "AS"}.packet(t),
			} {
				got := loop(sent)
				checkError(t, name, loop(portUnreachable(t, a.client, a.service, got)), a.service, a.client, sent, false)
			}
		}
	}
}

// Errors about packets that are not of a service stay as they are.
func TestErrorsAboutOtherPacketsStayAsTheyAre(t *testing.T) {
	for _, a := range families {
		r := newRig(t, model.MPLSoUDP, false, withServices)
		r.setService(t, a.service, at(a.backend, 80))
		r.leave(t, segment{at(a.client, 40000), at(a.service, 80), unix.IPPROTO_UDP, ""}.packet(t))
		for _, quoted := range []segment{
			{at(a.client, 40001), at(a.backend, 80), unix.IPPROTO_UDP, ""},
			{at(a.client, 40000), at(a.backend, 81), unix.IPPROTO_UDP, ""},
			{at(a.client, 40000), at(a.other, 80), unix.IPPROTO_TCP, "A"},
			{at(a.client, 40000), at(a.backend, 80), unix.IPPROTO_TCP, "A"},
		} {
			ip := portUnreachable(t, a.backend, a.client, quoted.packet(t))
			if got := r.arrive(t, ip); !bytes.Equal(got, ip) {
				t.Errorf("an error that quotes %v became\n%x, want\n%x", quoted, got, ip)
			}
		}
	}
}
