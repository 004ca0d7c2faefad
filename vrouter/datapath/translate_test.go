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

// Locators of this node and of the node far.
var (
	ownLocator = netip.MustParseAddr("fd77:1:2:3::")
	farLocator = netip.MustParseAddr("fd77:ffff:ffff:4::")
)

// nhTranslated is the nexthop that translates packets to the node far.
const nhTranslated uint32 = 100

// addTranslation changes the tables: packets to the node far are translated, and the locators
// of both nodes have 64 bits. The fallback is the tunnel to the node far.
func addTranslation(f *fib.Tables) {
	translateBetween(netip.PrefixFrom(ownLocator, 64), netip.PrefixFrom(farLocator, 64))(f)
}

// translateBetween is like addTranslation, but with other locators.
func translateBetween(own, far netip.Prefix) func(*fib.Tables) {
	return func(f *fib.Tables) {
		locators := fib.LocatorsOf(own, far)
		t := f.Nexthops[nhTunnel]
		t.Encap, t.Flags, t.Port, t.MTU, t.Fallback = layout.Number(model.Translated), 0, 0, 1480, nhTunnel
		t.SetPaths(layout.PathOf(own.Addr(), far.Addr(), netip.MustParseAddr("fd31::fe"), t.Path[0].Oif))
		t.Path[0].Locators = locators
		f.Nexthops[nhTranslated] = t
		for k, r := range f.Routes {
			if r.Nexthop == nhTunnel {
				r.Nexthop = nhTranslated
				f.Routes[k] = r
			}
		}
		f.Settings.SetLocator(own)
		f.Remotes[layout.AddressOf(far.Addr())] = layout.Remote{ID: f.Nexthops[nhTunnel].Remote, Nexthop: nhTranslated, Encaps: layout.Bits(model.Translated), Locators: locators}
	}
}

// inLocator returns the address of a workload in a locator; bpf/translate.h describes it.
func inLocator(locator netip.Addr, network uint16, a netip.Addr) netip.Addr {
	b, inner := locator.As16(), a.As16()
	copy(b[12:], inner[12:])
	if a.Is4() {
		clear(inner[:12])
	} else {
		network |= 0x8000
	}
	binary.BigEndian.PutUint16(b[10:], network)
	for i := range inner {
		inner[i] ^= 0xff
	}
	binary.BigEndian.PutUint16(b[8:], ^sum16(slices.Concat(b[:12], inner[:12])))
	return netip.AddrFrom16(b)
}

// transports returns the payloads that can be translated, each as functions that return the
// layers of the IPv4 packet and of the IPv6 packet.
func transports(data string) map[string][2]func(layers.IPv4, layers.IPv6) []gopacket.SerializableLayer {
	type both = [2]func(layers.IPv4, layers.IPv6) []gopacket.SerializableLayer
	echo4 := func(kind uint8) func(layers.IPv4, layers.IPv6) []gopacket.SerializableLayer {
		return func(ip layers.IPv4, _ layers.IPv6) []gopacket.SerializableLayer {
			ip.Protocol = layers.IPProtocolICMPv4
			return []gopacket.SerializableLayer{&ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, 0), Id: 5, Seq: 6}, gopacket.Payload(data)}
		}
	}
	echo6 := func(kind uint8) func(layers.IPv4, layers.IPv6) []gopacket.SerializableLayer {
		return func(_ layers.IPv4, ip layers.IPv6) []gopacket.SerializableLayer {
			ip.NextHeader = layers.IPProtocolICMPv6
			icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)}
			icmp.SetNetworkLayerForChecksum(&ip)
			return []gopacket.SerializableLayer{&ip, icmp, &layers.ICMPv6Echo{Identifier: 5, SeqNumber: 6}, gopacket.Payload(data)}
		}
	}
	tcp := func(network gopacket.NetworkLayer) gopacket.SerializableLayer {
		l := &layers.TCP{SrcPort: 1234, DstPort: 80, Seq: 77, ACK: true, Window: 100}
		l.SetNetworkLayerForChecksum(network)
		return l
	}
	udp := func(network gopacket.NetworkLayer) gopacket.SerializableLayer {
		l := &layers.UDP{SrcPort: 1234, DstPort: 80}
		l.SetNetworkLayerForChecksum(network)
		return l
	}
	over := func(protocol layers.IPProtocol, transport func(gopacket.NetworkLayer) gopacket.SerializableLayer) both {
		return both{
			func(ip layers.IPv4, _ layers.IPv6) []gopacket.SerializableLayer {
				ip.Protocol = protocol
				return []gopacket.SerializableLayer{&ip, transport(&ip), gopacket.Payload(data)}
			},
			func(_ layers.IPv4, ip layers.IPv6) []gopacket.SerializableLayer {
				ip.NextHeader = protocol
				return []gopacket.SerializableLayer{&ip, transport(&ip), gopacket.Payload(data)}
			},
		}
	}
	return map[string]both{
		"TCP": over(layers.IPProtocolTCP, tcp), "UDP": over(layers.IPProtocolUDP, udp),
		"echo request": {echo4(8), echo6(128)}, "echo reply": {echo4(0), echo6(129)},
	}
}

// ip4 and ip6 return the header of a packet before and after its translation.
func ip4(from, to netip.Addr, ttl uint8) layers.IPv4 {
	return layers.IPv4{Version: 4, IHL: 5, TTL: ttl, TOS: 0xb9, SrcIP: from.AsSlice(), DstIP: to.AsSlice(), Flags: layers.IPv4DontFragment}
}

func ip6(from, to netip.Addr, hops uint8) layers.IPv6 {
	return layers.IPv6{Version: 6, HopLimit: hops, TrafficClass: 0xb9, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
}

// packets6 returns IPv6 packets that can be translated. Their checksums are right for the
// addresses of ip.
func packets6(t *testing.T, ip layers.IPv6) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for name, l := range transports("some payload") {
		all[name] = serialize(t, l[1](layers.IPv4{}, ip)...)
	}
	for name, header := range map[string][]byte{"a first fragment": {17, 0, 0, 1, 1, 2, 3, 4}, "a later fragment": {6, 0, 0, 16, 1, 2, 3, 4}} {
		ip.NextHeader = layers.IPProtocolIPv6Fragment
		all[name] = serialize(t, &ip, gopacket.Payload(append(header, 4, 210, 0, 80, 0, 16, 0x12, 0x34)))
	}
	ip.NextHeader = 253 // RFC 3692: for experiments
	all["another protocol"] = serialize(t, &ip, gopacket.Payload("some payload"))
	ip.NextHeader = layers.IPProtocolNoNextHeader
	all["no payload"] = serialize(t, &ip)
	return all
}

// Only the addresses, the hop limit and the flow label of an IPv6 packet change.
func TestAnIPv6PacketIsTranslated(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, addTranslation)
	sent := packets6(t, ip6(inLocator(ownLocator, 1, addrA6), inLocator(farLocator, 1, addrB6), 31))
	for name, b := range packets6(t, ip6(addrA6, addrB6, 32)) {
		code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, b))
		if code != actRedirect {
			t.Fatalf("%s: action %d and drop reason %s, want a redirect", name, code, r.drop(t, nil))
		}
		got := bytes.Clone(out[14:])
		got[1], got[2], got[3] = got[1]&0xf0, 0, 0 // the flow label
		if !bytes.Equal(got, sent[name]) {
			t.Errorf("%s: the packet is\n%x, want\n%x", name, got, sent[name])
		}
	}
	received := packets6(t, ip6(addrB6, addrA6, 60))
	for name, b := range packets6(t, ip6(inLocator(farLocator, 1, addrB6), inLocator(ownLocator, 1, addrA6), 60)) {
		b[2], b[3] = 0x12, 0x34 // the flow label
		code, out := r.run(t, r.programs.FabricTc, r.fabric, frame(macB, macA, b))
		if code != actRedirect {
			t.Fatalf("%s: action %d and drop reason %s, want a redirect", name, code, r.drop(t, nil))
		}
		if want := frame(model.RouterMAC, macA, received[name]); !bytes.Equal(out, want) {
			t.Errorf("%s: the packet is\n%x, want\n%x", name, out, want)
		}
	}
}

// The checksums of the expected packets are computed with the IPv6 addresses.
func TestATranslatedPacketLeavesAsIPv6(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, addTranslation)
	for name, l := range transports("some payload") {
		code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, serialize(t, l[0](ip4(addrA, addrB, 64), layers.IPv6{})...)))
		if code != actRedirect {
			t.Fatalf("%s: action %d and drop reason %s, want a redirect", name, code, r.drop(t, nil))
		}
		want := serialize(t, l[1](layers.IPv4{}, ip6(inLocator(ownLocator, 1, addrA), inLocator(farLocator, 1, addrB), 63))...)
		got := bytes.Clone(out[14:])
		if len(got) > 3 {
			got[1], got[2], got[3] = got[1]&0xf0, 0, 0 // the flow label
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the packet is\n%x, want\n%x", name, got, want)
		}
	}
	stats := must.Get(r.VRFStats())(t)
	must.Equal(t, 4, stats[1].TxPackets[layout.Number(model.Translated)])
}

func TestATranslatedPacketArrives(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, addTranslation)
	for name, l := range transports("some payload") {
		in := frame(macB, macA, serialize(t, l[1](layers.IPv4{}, ip6(inLocator(farLocator, 1, addrB), inLocator(ownLocator, 1, addrA), 60))...))
		code, out := r.run(t, r.programs.FabricTc, r.fabric, in)
		if code != actRedirect {
			t.Fatalf("%s: action %d and drop reason %s, want a redirect", name, code, r.drop(t, nil))
		}
		want := frame(model.RouterMAC, macA, serialize(t, l[0](ip4(addrB, addrA, 60), layers.IPv6{})...))
		if !bytes.Equal(out, want) {
			t.Errorf("%s: the packet is\n%x, want\n%x", name, out, want)
		}
	}
}

// Packets that cannot be translated without loss use the fallback. If there is no fallback,
// they are dropped.
func TestPacketsThatCannotBeTranslatedUseTheFallback(t *testing.T) {
	udp := func(change func(*layers.IPv4)) []byte {
		ip := ip4(addrA, addrB, 64)
		ip.Protocol = layers.IPProtocolUDP
		change(&ip)
		return serialize(t, &ip, gopacket.Payload(append([]byte{4, 210, 0, 80, 0, 16, 0x12, 0x34}, make([]byte, 8)...)))
	}
	noChecksum := udp(func(*layers.IPv4) {})
	noChecksum[20+6], noChecksum[20+7] = 0, 0
	icmpError := ip4(addrA, addrB, 64)
	icmpError.Protocol = layers.IPProtocolICMPv4
	header6 := func(next layers.IPProtocol, payload ...byte) []byte {
		ip := ip6(addrA6, addrB6, 64)
		ip.NextHeader = next
		return serialize(t, &ip, gopacket.Payload(payload))
	}
	packets := map[string]struct {
		ip     []byte
		reason string
	}{
		"IPv6 to another prefix":           {packet(t, addrA6, netip.MustParseAddr("fd00:9::b"), 0, 64, "hello"), "prefix"},
		"an echo to another prefix":        {echoTo(t, netip.MustParseAddr("fd00:9::b")), "prefix"},
		"IPv6 with a low hop limit":        {packet(t, addrA6, addrB6, 0, 31, "hello"), "low_ttl"},
		"an ICMPv6 error":                  {header6(58, 1, 4, 0, 0, 0, 0, 0, 0), "icmp"},
		"an ICMPv6 node information query": {header6(58, 139, 0, 0, 0, 0, 0, 0, 0), "icmp"},
		"IPv6 with hop-by-hop options":     {header6(0, 59, 0, 1, 4, 0, 0, 0, 0), "extension_header"},
		"IPv6 with a routing header":       {header6(43, 59, 0, 0, 0, 0, 0, 0, 0), "extension_header"},
		"a large packet without DF":        {largeWithoutDF(t), "without_df"},
		"a first fragment":                 {udp(func(ip *layers.IPv4) { ip.Flags = layers.IPv4MoreFragments | layers.IPv4DontFragment }), "fragment"},
		"a low TTL":                        {udp(func(ip *layers.IPv4) { ip.TTL = 31 }), "low_ttl"},
		"a datagram without checksum":      {noChecksum, "no_checksum"},
		"an IP option": {udp(func(ip *layers.IPv4) {
			ip.Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1}, {OptionType: 0}}
		}), "ip_options"},
		"another protocol": {udp(func(ip *layers.IPv4) { ip.Protocol = 253 }), "protocol"},
		"an ICMP error":    {serialize(t, &icmpError, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 3)}, gopacket.Payload(make([]byte, 28))), "icmp"},
	}
	r := newRig(t, model.MPLSoUDP, false, addTranslation)
	for name, c := range packets {
		before := r.fallbacks(t)
		code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, c.ip))
		if code != actRedirect {
			t.Errorf("%s: action %d and drop reason %s, want a redirect", name, code, r.drop(t, nil))
			continue
		}
		if label, inner, _ := outerOf(t, model.MPLSoUDP, false, out); label != labelOf(model.MPLSoUDP, false) || len(inner) != len(c.ip) {
			t.Errorf("%s: label %d with %d bytes, want label %d with %d", name, label, len(inner), labelOf(model.MPLSoUDP, false), len(c.ip))
		}
		r.counted(t, name, before, c.reason)
	}
	alone := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
		addTranslation(f)
		n := f.Nexthops[nhTranslated]
		n.Fallback = 0
		f.Nexthops[nhTranslated] = n
	})
	for name, c := range packets {
		before, _ := alone.Drops()
		counts := alone.fallbacks(t)
		code, _ := alone.run(t, alone.programs.FromWorkload, alone.vif, frame(macA, model.RouterMAC, c.ip))
		if reason := alone.drop(t, before); code != actShot || reason != "untranslatable" {
			t.Errorf("%s, without fallback: action %d and drop reason %s, want untranslatable", name, code, reason)
		}
		alone.counted(t, name+", without fallback", counts, c.reason)
	}
}

// echoTo returns an ICMPv6 echo request of workload A.
func echoTo(t *testing.T, to netip.Addr) []byte {
	return serialize(t, transports("hello")["echo request"][1](layers.IPv4{}, ip6(addrA6, to, 64))...)
}

// largeWithoutDF returns a packet of 1261 bytes.
func largeWithoutDF(t *testing.T) []byte {
	ip := ip4(addrA, addrB, 64)
	ip.Protocol, ip.Flags = layers.IPProtocolUDP, 0
	udp := &layers.UDP{SrcPort: 1234, DstPort: 80}
	udp.SetNetworkLayerForChecksum(&ip)
	return serialize(t, &ip, udp, gopacket.Payload(make([]byte, 1261-28)))
}

// A small packet without DF is translated. The payload length of the translated packet does
// not include the padding of the frame.
func TestSmallAndPaddedPacketsAreTranslated(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, addTranslation)
	for name, l := range transports("") {
		ip := ip4(addrA, addrB, 64)
		ip.Flags = 0
		b := frame(macA, model.RouterMAC, append(serialize(t, l[0](ip, layers.IPv6{})...), 0, 0, 0, 0, 0, 0))
		if len(b) < 14+40 {
			b = append(b, make([]byte, 14+40-len(b))...) // BPF_PROG_TEST_RUN needs 54 bytes
		}
		code, out := r.run(t, r.programs.FromWorkload, r.vif, b)
		if code != actRedirect {
			t.Errorf("%s: action %d and drop reason %s, want a redirect", name, code, r.drop(t, nil))
			continue
		}
		want := serialize(t, l[1](layers.IPv4{}, ip6(inLocator(ownLocator, 1, addrA), inLocator(farLocator, 1, addrB), 63))...)
		got := bytes.Clone(out[14:])
		got[1], got[2], got[3] = got[1]&0xf0, 0, 0 // the flow label
		if !bytes.HasPrefix(got, want) {
			t.Errorf("%s: the packet is\n%x, want\n%x and padding", name, got, want)
		}
	}
}

// fabric_tc answers tests to the node's own address in its locator. It leaves tests of unknown
// nodes, and other messages, to the kernel.
func TestFabricTcAnswersTestsOfLocators(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, addTranslation)
	echo := func(from, to netip.Addr, kind uint8, id uint16, data byte) []byte {
		ip := ip6(from, to, 60)
		ip.NextHeader = layers.IPProtocolICMPv6
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)}
		icmp.SetNetworkLayerForChecksum(&ip)
		return serialize(t, &ip, icmp, &layers.ICMPv6Echo{Identifier: id, SeqNumber: 9}, gopacket.Payload("vrouter direct 1\x00"+string(data)+"\x01\x02\x03\x04\x05\x06\x07\x08"))
	}
	far, own := farLocator.Next(), ownLocator.Next()
	for _, c := range []struct {
		what string
		ip   []byte
		want uint32
	}{
		{"a request", echo(far, own, 128, 0x7664, 1), actRedirect},
		{"a request of an unknown node", echo(netip.MustParseAddr("fd77:9::1"), own, 128, 0x7664, 1), actUnspec},
		{"a reply", echo(far, own, 129, 0x7664, 2), actUnspec},
		{"the kernel's reply", echo(far, own, 129, 0x7664, 1), actUnspec},
		{"an echo request of ping", echo(far, own, 128, 7, 1), actUnspec},
	} {
		code, out := r.run(t, r.programs.FabricTc, r.fabric, frame(macB, macA, c.ip))
		if code != c.want {
			t.Errorf("%s has action %d, want %d", c.what, int32(code), int32(c.want))
			continue
		}
		if c.want != actRedirect {
			continue
		}
		want := frame(macA, macB, echo(own, far, 129, 0x7664, 2))
		want[14+7] = 64
		if !bytes.Equal(out, want) {
			t.Errorf("%s: the reply is\n%x, want\n%x", c.what, out, want)
		}
	}
}

// fabric_out drops packets to workloads' addresses in the locators of nodes if the packets
// lack the mark of the programs. The source of a packet does not matter.
func TestOnlyTheProgramsSendToLocators(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, addTranslation)
	for _, c := range []struct {
		what     string
		from, to netip.Addr
		mark     uint32
		want     uint32
	}{
		{"a workload's address to a workload's address", inLocator(ownLocator, 1, addrA), inLocator(farLocator, 1, addrB), 0, actShot},
		{"a third node's locator to a workload's address", netip.MustParseAddr("fd77:9::1"), inLocator(farLocator, 1, addrB), 0, actShot},
		{"an underlay address to a workload's address", local6, inLocator(farLocator, 1, addrB), 0, actShot},
		{"a workload's address to a workload's address, with the mark", inLocator(ownLocator, 1, addrA), inLocator(farLocator, 1, addrB), r.nonce[0], actUnspec},
		{"the node's own address in its locator to another node's own address", ownLocator.Next(), farLocator.Next(), 0, actUnspec},
		{"an underlay address to an unknown locator", local6, inLocator(netip.MustParseAddr("fd77:9::"), 1, addrB), 0, actUnspec},
	} {
		b := frame(macA, macB, packet(t, c.from, c.to, 0, 64, "hello"))
		if code, _ := r.runMarked(t, r.programs.FabricOut, r.fabric, b, c.mark); code != c.want {
			t.Errorf("a packet from %s has action %d, want %d", c.what, code, c.want)
		}
	}
}

// If a router of the underlay reports that a translated packet is too large, the programs use
// the reported MTU.
func TestTranslationLearnsTheMTUOfThePath(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, addTranslation)
	send := func(size int, from, to netip.Addr) (out []byte, reason string) {
		before, _ := r.Drops()
		header := map[bool]int{false: 20 + 8, true: 40 + 8}[from.Is6()]
		_, out = r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, from, to, 0, 64, string(make([]byte, size-header)))))
		return out, r.drop(t, before)
	}
	sent, reason := send(1400, addrA, addrB)
	if reason != "none" {
		t.Fatalf("a packet of 1400 bytes is dropped: %s", reason)
	}
	b := tooBig(t, true, 1300, sent)
	to := inLocator(ownLocator, 1, addrA).As16()
	copy(b[14+24:], to[:]) // tooBig sends to an underlay address
	if code, _ := r.run(t, r.programs.FabricTc, r.fabric, b); code != actUnspec {
		t.Errorf("the error has action %d, want %d", int32(code), actUnspec)
	}
	for size, want := range map[int]string{1280: "none", 1281: "too_big"} {
		if _, reason := send(size, addrA, addrB); reason != want {
			t.Errorf("an IPv4 packet of %d bytes is dropped as %s, want %s", size, reason, want)
		}
		// Translation does not make IPv6 packets longer.
		if _, reason := send(size+20, addrA6, addrB6); reason != want {
			t.Errorf("an IPv6 packet of %d bytes is dropped as %s, want %s", size+20, reason, want)
		}
	}
}
