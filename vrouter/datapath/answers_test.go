package datapath

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

var (
	gateway4 = netip.MustParseAddr("10.1.0.1")
	gateway6 = netip.MustParseAddr("fd00:1::1")
)

// answer sends a frame of the first workload; what is not sent back is a fault.
func (r *rig) answer(t *testing.T, frame []byte) gopacket.Packet {
	t.Helper()
	before := must.Get(r.Outcomes())(t)
	code, out := r.run(t, r.programs.FromWorkload, r.vif, frame)
	after := must.Get(r.Outcomes())(t)
	if code != actRedirect || after.Forwarded != before.Forwarded {
		t.Fatalf("action %d, %+v, drops %v", code, after, r.drop(t, nil))
	}
	must.Equal(t, macA[:], out[:6])
	return gopacket.NewPacket(out, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
}

func arpFrame(t *testing.T, operation uint16, mac model.MAC, from, to netip.Addr) []byte {
	return serialize(t, &layers.Ethernet{SrcMAC: hw(mac), DstMAC: []byte{255, 255, 255, 255, 255, 255}, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{AddrType: 1, Protocol: 0x800, HwAddressSize: 6, ProtAddressSize: 4, Operation: operation,
			SourceHwAddress: hw(mac), SourceProtAddress: from.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: to.AsSlice()})
}

func onlyL3(f *fib.Tables) {
	for i, v := range f.Vifs {
		v.Flags &^= layout.VifL2
		f.Vifs[i] = v
	}
}

func TestARPIsAnsweredForRoutedAddresses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*fib.Tables)
		to     netip.Addr
		want   model.MAC
	}{
		{"l3: a remote workload", onlyL3, addrB, model.RouterMAC},
		{"l3: behind a prefix", onlyL3, netip.MustParseAddr("10.9.1.1"), model.RouterMAC},
		{"l3: the gateway", onlyL3, gateway4, model.RouterMAC},
		{"l2l3: a remote workload", nil, addrB, macB},
		{"l2l3: the gateway", nil, gateway4, model.RouterMAC},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, model.MPLSoUDP, false, c.change)
			p := r.answer(t, arpFrame(t, 1, macA, addrA, c.to))
			a, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP)
			if !ok || a.Operation != 2 || !bytes.Equal(a.SourceHwAddress, c.want[:]) || !bytes.Equal(a.SourceProtAddress, c.to.AsSlice()) ||
				!bytes.Equal(a.DstHwAddress, macA[:]) || !bytes.Equal(a.DstProtAddress, addrA.AsSlice()) {
				t.Errorf("%v", p)
			}
		})
	}
}

func TestOtherARPIsDropped(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, onlyL3)
	zero := netip.IPv4Unspecified()
	for _, c := range []struct {
		reason string
		frame  []byte
	}{
		{"arp_unknown", arpFrame(t, 1, macA, addrA, netip.MustParseAddr("10.1.7.7"))},
		{"arp_unknown", arpFrame(t, 1, macA, addrA, addrA)}, // gratuitous
		{"arp_unknown", arpFrame(t, 1, macA, zero, addrA)},  // probe
		{"arp_unknown", arpFrame(t, 2, macA, addrA, addrB)}, // a reply
		{"spoofed_ip", arpFrame(t, 1, macA, addrB, gateway4)},
		{"spoofed_mac", arpFrame(t, 1, macB, addrA, gateway4)},
		{"malformed", arpFrame(t, 1, macA, addrA, gateway4)[:30]},
	} {
		before := must.Get(r.Drops())(t)
		if code, _ := r.run(t, r.programs.FromWorkload, r.vif, c.frame); code != actShot {
			t.Errorf("%s: action %d", c.reason, code)
		}
		must.Equal(t, c.reason, r.drop(t, before))
	}
}

func solicitation(t *testing.T, from, target netip.Addr, option bool) []byte {
	ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: from.AsSlice(), DstIP: netip.MustParseAddr("ff02::1:ff00:1").AsSlice()}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(135, 0)}
	icmp.SetNetworkLayerForChecksum(ip)
	ns := &layers.ICMPv6NeighborSolicitation{TargetAddress: target.AsSlice()}
	if option {
		ns.Options = layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: macA[:]}}
	}
	return serialize(t, &layers.Ethernet{SrcMAC: hw(macA), DstMAC: []byte{0x33, 0x33, 0xff, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv6}, ip, icmp, ns)
}

func checkICMPv6(t *testing.T, p gopacket.Packet) *layers.ICMPv6 {
	t.Helper()
	ip := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
	body := append(append(append([]byte{}, ip.SrcIP...), ip.DstIP...), 0, 0, byte(len(ip.Payload)>>8), byte(len(ip.Payload)), 0, 0, 0, 58)
	body = append(body, ip.Payload...)
	if len(body)%2 == 1 {
		body = append(body, 0)
	}
	if int(ip.Length) != len(ip.Payload) || sum16(body) != 0xffff {
		t.Errorf("length %d of %d, checksum over all %04x", ip.Length, len(ip.Payload), sum16(body))
	}
	icmp, ok := p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
	if !ok {
		t.Fatalf("no ICMPv6: %v", p)
	}
	return icmp
}

func TestNeighbourSolicitationsAreAnswered(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, onlyL3)
	routerLocal := netip.MustParseAddr("fe80::200:5eff:fe00:100")
	for _, target := range []netip.Addr{addrB6, routerLocal} {
		for _, option := range []bool{true, false} {
			p := r.answer(t, solicitation(t, addrA6, target, option))
			icmp := checkICMPv6(t, p)
			na, ok := p.Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement)
			if !ok || icmp.TypeCode.Type() != 136 || na.Flags != 0xe0 || !na.TargetAddress.Equal(target.AsSlice()) ||
				len(na.Options) != 1 || na.Options[0].Type != layers.ICMPv6OptTargetAddress || !bytes.Equal(na.Options[0].Data, model.RouterMAC[:]) {
				t.Errorf("to a question for %s: %v", target, p)
			}
		}
	}
	for name, frame := range map[string][]byte{
		"duplicate address detection": solicitation(t, netip.IPv6Unspecified(), addrA6, false),
		"its own":                     solicitation(t, addrA6, addrA6, true),
		"unknown":                     solicitation(t, addrA6, netip.MustParseAddr("fd00:1::77"), true),
	} {
		if code, _ := r.run(t, r.programs.FromWorkload, r.vif, frame); code != actShot {
			t.Errorf("%s: action %d", name, code)
		}
	}
}

func TestTheGatewayAnswersPing(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
		f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(gateway6, 128)}] = layout.Route{Nexthop: nhGateway}
	})
	payload := bytes.Repeat([]byte("abc"), 100)
	ip := &layers.IPv4{Version: 4, TTL: 7, Protocol: layers.IPProtocolICMPv4, SrcIP: addrA.AsSlice(), DstIP: gateway4.AsSlice()}
	p := r.answer(t, frame(macA, model.RouterMAC, serialize(t, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0), Id: 3, Seq: 4}, gopacket.Payload(payload))))
	want := serialize(t, &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: gateway4.AsSlice(), DstIP: addrA.AsSlice()},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(0, 0), Id: 3, Seq: 4}, gopacket.Payload(payload))
	must.Equal(t, want, p.Data()[14:])
	echo6 := func(from, to netip.Addr, kind uint8, limit uint8) []byte {
		ip := &layers.IPv6{Version: 6, HopLimit: limit, NextHeader: layers.IPProtocolICMPv6, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)}
		icmp.SetNetworkLayerForChecksum(ip)
		return serialize(t, ip, icmp, &layers.ICMPv6Echo{Identifier: 3, SeqNumber: 4}, gopacket.Payload(payload))
	}
	p = r.answer(t, frame(macA, model.RouterMAC, echo6(addrA6, gateway6, 128, 9)))
	must.Equal(t, echo6(gateway6, addrA6, 129, 64), p.Data()[14:])
}

// Each refusal that may be answered is, from the gateway, with a right sum.
func TestRefusedPacketsGetTheRightICMPErrors(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, nil)
	big := string(make([]byte, 1450))
	for _, c := range []struct {
		name       string
		ip         []byte
		kind, code uint8
		mtu        uint32
	}{
		{"TTL", packet(t, addrA, addrB, 0, 1, "x"), 11, 0, 0},
		{"too big", packet(t, addrA, addrB, 0, 9, big), 3, 4, 1430},
		{"too big without DF", withoutDF(packet(t, addrA, addrB, 0, 9, big)), 3, 4, 1430},
		{"no route", packet(t, addrA, netip.MustParseAddr("10.77.0.1"), 0, 9, "x"), 3, 1, 0},
		{"gateway's port", packet(t, addrA, gateway4, 0, 9, "x"), 3, 3, 0},
		{"hop limit", packet(t, addrA6, addrB6, 0, 1, "payload"), 3, 0, 0},
		{"too big, IPv6", packet(t, addrA6, addrB6, 0, 9, big), 2, 0, 1430},
		{"no route, IPv6", packet(t, addrA6, netip.MustParseAddr("fd77::1"), 0, 9, "payload"), 1, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := r.answer(t, frame(macA, model.RouterMAC, c.ip))
			if c.ip[0]>>4 == 6 {
				icmp := checkICMPv6(t, p)
				body := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6).Payload
				if icmp.TypeCode.Type() != c.kind || icmp.TypeCode.Code() != c.code || binary.BigEndian.Uint32(body[4:]) != c.mtu || !bytes.HasPrefix(c.ip, body[8:]) {
					t.Errorf("%v", p)
				}
				return
			}
			ip := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
			body := ip.Payload
			if sum16(p.Data()[14:34]) != 0xffff || sum16(body) != 0xffff || !ip.SrcIP.Equal(gateway4.AsSlice()) || !ip.DstIP.Equal(addrA.AsSlice()) {
				t.Errorf("%v", p)
			}
			if body[0] != c.kind || body[1] != c.code || uint32(binary.BigEndian.Uint16(body[6:])) != c.mtu || len(body) < 8+28 || !bytes.HasPrefix(c.ip, body[8:]) {
				t.Errorf("ICMP %x", body)
			}
		})
	}
}

// withoutDF clears DF in an IPv4 packet that has no other flag.
func withoutDF(ip []byte) []byte {
	ip[6], ip[10], ip[11] = 0, 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^sum16(ip[:20]))
	return ip
}

func TestErrorsAreNotAnsweredAndAreLimited(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, nil)
	an := serialize(t, &layers.IPv4{Version: 4, TTL: 1, Protocol: layers.IPProtocolICMPv4, SrcIP: addrA.AsSlice(), DstIP: addrB.AsSlice()},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 3)}, gopacket.Payload(packet(t, addrB, addrA, 0, 9, "x")))
	later := packet(t, addrA, addrB, 0, 1, "some payload")
	later[6], later[7] = 0, 9 // not the first fragment
	later[10], later[11] = 0, 0
	s := ^sum16(later[:20])
	later[10], later[11] = byte(s>>8), byte(s)
	for name, ip := range map[string][]byte{"an error": an, "a later fragment": later} {
		if code, _ := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, ip)); code != actShot {
			t.Errorf("%s was answered: action %d", name, code)
		}
	}
	answered := 0
	for range 2000 {
		if code, _ := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 1, "x"))); code == actRedirect {
			answered++
		}
	}
	if answered < 100 || answered >= 2000 {
		t.Errorf("%d of 2000 answered at once", answered)
	}
}

func TestTheMSSIsLoweredToTheMTUOfThePath(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, nil)
	syn := func(mss uint16, flag bool, odd bool) []byte {
		ip := &layers.IPv4{Version: 4, TTL: 9, Protocol: layers.IPProtocolTCP, SrcIP: addrA.AsSlice(), DstIP: addrB.AsSlice()}
		tcp := &layers.TCP{SrcPort: 5, DstPort: 80, Seq: 1, SYN: flag, Window: 100}
		if odd {
			tcp.Options = append(tcp.Options, layers.TCPOption{OptionType: 1})
		}
		tcp.Options = append(tcp.Options, layers.TCPOption{OptionType: 2, OptionLength: 4, OptionData: []byte{byte(mss >> 8), byte(mss)}})
		tcp.SetNetworkLayerForChecksum(ip)
		return serialize(t, ip, tcp)
	}
	for _, c := range []struct {
		mss       uint16
		flag, odd bool
		want      uint16
	}{{1460, true, false, 1390}, {1460, true, true, 1390}, {1000, true, false, 1000}, {1460, false, false, 1460}} {
		for to, link := range map[model.MAC]int{model.RouterMAC: 0, macB: 14} {
			code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, to, syn(c.mss, c.flag, c.odd)))
			if code != actRedirect {
				t.Fatalf("action %d", code)
			}
			_, inner, _ := outerOf(t, model.MPLSoUDP, false, out)
			want := syn(c.want, c.flag, c.odd)
			if !bytes.Equal(inner[link+20:], want[20:]) {
				t.Errorf("to %s, MSS %d, SYN %v, at an odd place %v:\n%x, want\n%x", to, c.mss, c.flag, c.odd, inner[link+20:], want[20:])
			}
		}
	}
}

// TestAWideSourceKeepsARPAndDiscovery: a port may send from any address. The vrouter
// must still answer its ARP requests for the gateway and its neighbours, and must
// not answer requests for the port's own addresses.
func TestAWideSourceKeepsARPAndDiscovery(t *testing.T) {
	wide := func(f *fib.Tables) {
		onlyL3(f)
		for i, v := range f.Vifs {
			v.SetSources(append(v.Sources(), netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")))
			f.Vifs[i] = v
		}
		f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.MustParsePrefix("10.99.0.0/16")}] = layout.Route{Nexthop: nhVif}
	}
	r := newRig(t, model.MPLSoUDP, false, wide)
	for _, to := range []netip.Addr{gateway4, addrB} {
		p := r.answer(t, arpFrame(t, 1, macA, addrA, to))
		if a, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP); !ok || a.Operation != 2 || !bytes.Equal(a.SourceHwAddress, hw(model.RouterMAC)) {
			t.Errorf("ARP for %s: %v", to, p)
		}
	}
	for _, c := range []struct{ from, to netip.Addr }{
		{addrA, addrA}, {netip.IPv4Unspecified(), addrA},
		{netip.MustParseAddr("10.99.0.7"), netip.MustParseAddr("10.99.0.7")}, {netip.IPv4Unspecified(), netip.MustParseAddr("10.99.0.7")},
	} {
		before := must.Get(r.Drops())(t)
		if code, _ := r.run(t, r.programs.FromWorkload, r.vif, arpFrame(t, 1, macA, c.from, c.to)); code != actShot || r.drop(t, before) != "arp_unknown" {
			t.Errorf("from %s for %s: action %d", c.from, c.to, code)
		}
	}
}

// A receiver ignores the padding behind an IP packet, so nothing in the padding is answered. Options
// do not hide the port of a DHCP server.
func TestHeadersInThePaddingAreNotAnswered(t *testing.T) {
	cut := func(b []byte, length uint16) []byte {
		b = slices.Clone(b)
		at := 14 + 4
		if b[14]>>4 == 4 {
			at = 14 + 2
		}
		binary.BigEndian.PutUint16(b[at:], length)
		return b
	}
	echo := func(from, to netip.Addr) []byte {
		b := frame(macA, model.RouterMAC, packet(t, from, to, 0, 64, "x"))
		if from.Is4() {
			b[14+9], b[34] = 1, 8
			return b
		}
		b[14+6], b[54] = 58, 128
		return b
	}
	dhcp := packet(t, addrA6, addrB6, 0, 64, "x")
	binary.BigEndian.PutUint16(dhcp[40:], 547)
	options := slices.Concat(dhcp[:40], []byte{17, 0, 1, 4, 0, 0, 0, 0}, dhcp[40:])
	options[5], options[6] = options[5]+8, 60
	ns := solicitation(t, addrA6, gateway6, false)
	r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
		f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(gateway6, 128)}] = layout.Route{Nexthop: nhGateway}
	})
	r.answer(t, ns)
	for name, c := range map[string]struct {
		reason string
		frame  []byte
	}{
		"solicitation without a target": {"malformed", cut(ns, 8)},
		"solicitation without a type":   {"malformed", cut(ns, 0)},
		"echo":                          {"icmp_failed", cut(echo(addrA, gateway4), 24)},
		"echo, IPv6":                    {"icmp_failed", cut(echo(addrA6, gateway6), 4)},
		"DHCPv6 behind options":         {"rogue_router", frame(macA, macB, options)},
		"DHCPv6 in the padding":         {"rogue_router", cut(frame(macA, macB, options), 8)},
	} {
		before := must.Get(r.Drops())(t)
		code, _ := r.run(t, r.programs.FromWorkload, r.vif, c.frame)
		if got := r.drop(t, before); code != actShot || got != c.reason {
			t.Errorf("%s: action %d, dropped as %s, want %s", name, int32(code), got, c.reason)
		}
	}
}

// An l2 network has no gateway. If a packet exceeds the path MTU, the "too big" answer has the packet's
// destination as its source. Without an answer TCP would hang.
func TestTooBigComesFromTheDestinationInANetworkWithoutAGateway(t *testing.T) {
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		r := newRig(t, encap, v6, func(f *fib.Tables) {
			for i, v := range f.Vifs {
				v.Flags, v.Gateway4, v.Gateway6 = v.Flags&^layout.VifL3, 0, layout.Address{}
				f.Vifs[i] = v
			}
		})
		_, outer := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, macB, packet(t, addrA, addrB, 0, 9, string(make([]byte, 1300)))))
		r.run(t, r.programs.FabricTc, r.fabric, tooBig(t, v6, 1330, outer))
		mtu := uint32(1330 - 14 - map[bool]int{false: 20, true: 40}[v6] - map[model.Encapsulation]int{model.MPLSoGRE: 8, model.MPLSoUDP: 12, model.VXLAN: 16}[encap])
		big := string(make([]byte, 1370))
		ip := r.answer(t, frame(macA, macB, packet(t, addrA, addrB, 0, 9, big))).Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if body := ip.Payload; !ip.SrcIP.Equal(addrB.AsSlice()) || !ip.DstIP.Equal(addrA.AsSlice()) || sum16(body) != 0xffff ||
			body[0] != 3 || body[1] != 4 || uint32(binary.BigEndian.Uint16(body[6:])) != mtu {
			t.Errorf("the answer %v %x, want fragmentation needed from %s with MTU %d", ip, body, addrB, mtu)
		}
		p := r.answer(t, frame(macA, macB, packet(t, addrA6, addrB6, 0, 9, big)))
		ip6 := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
		if icmp := checkICMPv6(t, p); icmp.TypeCode.Type() != 2 || !ip6.SrcIP.Equal(addrB6.AsSlice()) || binary.BigEndian.Uint32(ip6.Payload[4:]) != max(mtu, 1280) {
			t.Errorf("the answer %v, want packet too big from %s with MTU %d", p, addrB6, max(mtu, 1280))
		}
		group := frame(macA, model.MAC{0x33, 0x33, 0, 0, 0, 1}, packet(t, addrA6, netip.MustParseAddr("ff02::1"), 0, 9, big))
		if code, _ := r.run(t, r.programs.FromWorkload, r.vif, group); code == actRedirect {
			t.Error("a packet to a group was answered")
		}
	})
}

// A gateway asks for the MAC addresses of its next hops. In a network that only routes, these are the
// workloads and the router. In a network that also bridges, workloads answer for themselves. The answer
// has the label or VNI that the gateway expects.
func TestARPAndSolicitationsOfAGatewayAreAnswered(t *testing.T) {
	const expected = 5008
	broadcast := model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		for _, bridges := range []bool{false, true} {
			if encap != model.VXLAN && !bridges {
				continue // MPLS carries no Ethernet frames into such a network
			}
			r := newRig(t, encap, v6, func(f *fib.Tables) {
				if !bridges {
					onlyL3(f)
					n := f.VRFs[1]
					n.Flags, n.Flood = layout.VifL3, 0
					f.VRFs[1], f.Bridge = n, nil
					f.VNIs[1001] = layout.Target{Nexthop: nhVRF, Ethernet: 1}
				} else {
					f.Bridge[layout.BridgeKey{VRF: 1, MAC: macB}] = layout.BridgeEntry{Nexthop: nhTunnelEthernet, Label: expected}
				}
				f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(gateway6, 128)}] = layout.Route{Nexthop: nhGateway}
				for _, a := range []netip.Addr{addrB, addrB6} {
					f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(a, a.BitLen())}] = layout.Route{Nexthop: nhTunnel, Label: expected}
				}
			})
			ask := func(target netip.Addr, to model.MAC, summed bool) []byte {
				var inner []byte
				if target.Is4() {
					inner = arpFrame(t, 1, macB, addrB, target)
				} else {
					inner = solicitation(t, addrB6, target, true)
					copy(inner[6:], macB[:])
				}
				copy(inner, to[:])
				b := wrapped(t, encap, v6, labelOf(encap, true), 0, inner)
				if v6 { // a TTL that does not suffice for the way back
					b[14+7] = 3
				} else {
					b[14+8] = 3
					fixIPv4(b)
				}
				if summed {
					setOuterChecksum(b)
				}
				return b
			}
			here, away := []netip.Addr{gateway4, gateway6}, []netip.Addr{addrB, netip.MustParseAddr("10.1.0.77"), addrB6, netip.MustParseAddr("10.9.0.1")}
			if workloads := []netip.Addr{addrA, addrA6}; bridges {
				away = append(away, workloads...)
			} else {
				here = append(here, workloads...)
			}
			for _, target := range here {
				for _, to := range []model.MAC{broadcast, model.RouterMAC} {
					if to == model.RouterMAC && target.Is6() {
						continue // a packet to the router, which is routed
					}
					for _, summed := range []bool{false, encap != model.MPLSoGRE} {
						b := ask(target, to, summed)
						code, out := r.run(t, r.programs.FabricTc, r.fabric, b)
						if code != actRedirect {
							t.Fatalf("%s: action %d, %s", target, int32(code), r.drop(t, nil))
						}
						if _, meta, _ := r.xdp(t, b); meta != nil {
							t.Errorf("%s: XDP decapsulated the question", target)
						}
						if !bytes.Equal(out[:6], b[6:12]) || !bytes.Equal(out[6:12], b[:6]) {
							t.Errorf("%s: the answer has the outer Ethernet header %x, the question had %x", target, out[:14], b[:14])
						}
						checkAnswer(t, out, encap, v6, expected, target, summed)
					}
				}
			}
			for _, target := range away {
				if code, _ := r.run(t, r.programs.FabricTc, r.fabric, ask(target, broadcast, false)); code != actShot {
					t.Errorf("%s, which is not here, or answers for itself: action %d", target, int32(code))
				}
			}
			forged := ask(gateway4, broadcast, false)
			forged[bytes.Index(forged, broadcast[:])+11] = 0x99 // the source address follows the destination
			if code, _ := r.run(t, r.programs.FabricTc, r.fabric, forged); bridges && code != actShot {
				t.Errorf("a question from another's MAC address: action %d, want a drop", int32(code))
			}
		}
	})
}

// outerUDP returns the addresses, and the UDP header with its payload, of a tunnel packet.
func outerUDP(b []byte) (addresses, udp []byte) {
	if b[14]>>4 == 6 {
		return b[14+8 : 14+40], b[14+40:]
	}
	return b[14+12 : 14+20], b[14+20:]
}

// udpSum is 0xffff for a right UDP checksum.
func udpSum(b []byte) uint16 {
	addresses, udp := outerUDP(b)
	sum := slices.Concat(addresses, []byte{0, 17}, udp[4:6], udp)
	if len(sum)%2 == 1 {
		sum = append(sum, 0)
	}
	return sum16(sum)
}

func setOuterChecksum(b []byte) {
	_, udp := outerUDP(b)
	binary.BigEndian.PutUint16(udp[6:], ^udpSum(b))
}

func checkAnswer(t *testing.T, out []byte, encap model.Encapsulation, v6 bool, label uint32, target netip.Addr, summed bool) {
	t.Helper()
	addresses, shim := outerUDP(out)
	want, ttl := append(local.AsSlice(), far.AsSlice()...), out[14+8]
	if v6 {
		want, ttl = append(local6.AsSlice(), far6.AsSlice()...), out[14+7]
	}
	inner := shim[map[model.Encapsulation]int{model.MPLSoGRE: 8, model.MPLSoUDP: 12, model.VXLAN: 16}[encap]:]
	entry := label<<12 | 1<<8 | 64
	if encap == model.VXLAN {
		entry = label << 8
	}
	if got := binary.BigEndian.Uint32(shim[len(shim)-len(inner)-4:]); !bytes.Equal(addresses, want) || got != entry || ttl != 64 || !v6 && sum16(out[14:34]) != 0xffff {
		t.Errorf("%s: the answer has the outer addresses %x, TTL %d and label %x, want %x, 64 and %x", target, addresses, ttl, got, want, entry)
	}
	if has := encap != model.MPLSoGRE && binary.BigEndian.Uint16(shim[6:]) != 0; has != summed || has && udpSum(out) != 0xffff {
		t.Errorf("%s: outer checksum %x, the question had one: %v", target, shim[6:8], summed)
	}
	p := gopacket.NewPacket(inner, layers.LayerTypeEthernet, gopacket.Default)
	if a, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP); ok {
		if a.Operation != 2 || !bytes.Equal(a.SourceHwAddress, hw(model.RouterMAC)) || !bytes.Equal(a.SourceProtAddress, target.AsSlice()) || !bytes.Equal(a.DstHwAddress, hw(macB)) {
			t.Errorf("%s: %v", target, p)
		}
		return
	}
	icmp := checkICMPv6(t, p)
	na, ok := p.Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement)
	if icmp.TypeCode.Type() != 136 || !ok || !na.TargetAddress.Equal(target.AsSlice()) || len(na.Options) != 1 || !bytes.Equal(na.Options[0].Data, hw(model.RouterMAC)) || !bytes.Equal(inner[:6], macB[:]) {
		t.Errorf("%s: %v", target, p)
	}
}
