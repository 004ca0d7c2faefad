package datapath

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// clientFrames returns frames of DHCP and DNS clients, and a router solicitation. Frames with names that begin
// with "not: " are similar, but the agent does not answer them.
func clientFrames(t *testing.T) map[string][]byte {
	group := model.MAC{0x33, 0x33, 0, 1, 0, 2}
	udp := func(to model.MAC, from, address netip.Addr, source, destination layers.UDPPort, flags layers.IPv4Flag) []byte {
		segment := &layers.UDP{SrcPort: source, DstPort: destination}
		if from.Is4() {
			ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: address.AsSlice(), Flags: flags}
			segment.SetNetworkLayerForChecksum(ip)
			return frame(macA, to, serialize(t, ip, segment, gopacket.Payload("a message")))
		}
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: address.AsSlice()}
		segment.SetNetworkLayerForChecksum(ip)
		return frame(macA, to, serialize(t, ip, segment, gopacket.Payload("a message")))
	}
	link, everyone := netip.MustParseAddr("fe80::1234"), netip.AddrFrom4([4]byte{255, 255, 255, 255})
	icmp := func(kind uint8) []byte {
		ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: link.AsSlice(), DstIP: netip.MustParseAddr("ff02::2").AsSlice()}
		message := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)}
		message.SetNetworkLayerForChecksum(ip)
		return frame(macA, group, serialize(t, ip, message, gopacket.Payload(make([]byte, 12))))
	}
	return map[string][]byte{
		"discover":            udp(model.MAC{255, 255, 255, 255, 255, 255}, netip.IPv4Unspecified(), everyone, 68, 67, 0),
		"rebind":              udp(model.MAC{255, 255, 255, 255, 255, 255}, addrA, everyone, 68, 67, 0),
		"renew":               udp(model.RouterMAC, addrA, gateway4, 68, 67, 0),
		"DNS":                 udp(model.RouterMAC, addrA, gateway4, 40000, 53, 0),
		"DNS over IPv6":       udp(model.RouterMAC, addrA6, gateway6, 40000, 53, 0),
		"solicit":             udp(group, link, netip.MustParseAddr("ff02::1:2"), 546, 547, 0),
		"router solicitation": icmp(layers.ICMPv6TypeRouterSolicitation),
		"not: advertisement":  icmp(layers.ICMPv6TypeRouterAdvertisement),
		"not: another port":   udp(model.RouterMAC, addrA, gateway4, 68, 68, 0),
		"not: DHCPv6 in IPv4": udp(model.RouterMAC, addrA, gateway4, 68, 547, 0),
		"not: a fragment":     udp(model.RouterMAC, addrA, gateway4, 68, 67, layers.IPv4MoreFragments),
	}
}

// The programs let frames of clients pass to the agent only on a vif with VIF_F_AGENT.
func TestOnlyFramesOfClientsReachTheAgent(t *testing.T) {
	const passed = 0 // TC_ACT_OK
	for _, agents := range []bool{true, false} {
		r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
			onlyL3(f)
			f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(gateway6, 128)}] = layout.Route{Nexthop: nhGateway}
			for i, v := range f.Vifs {
				v.Flags |= layout.If[uint16](agents, layout.VifAgent)
				f.Vifs[i] = v
			}
		})
		for name, data := range clientFrames(t) {
			before := must.Get(r.Outcomes())(t)
			code, _ := r.run(t, r.programs.FromWorkload, r.vif, data)
			after := must.Get(r.Outcomes())(t)
			want := agents && !strings.HasPrefix(name, "not: ")
			if is := code == passed; is != want {
				t.Errorf("%s, VIF_F_AGENT %v: the action is %d; want TC_ACT_OK: %v", name, agents, code, want)
			}
			if answered := after.Answered == before.Answered+1; want && !answered {
				t.Errorf("%s: the outcomes were %+v and are %+v; want one more answered packet", name, before, after)
			}
		}
	}
}
