package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"testing"

	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// Nexthops, workloads and a remote that twoTenants adds to scene.
const (
	nhOther uint32 = iota + nhVif2 + 1
	nhVRF2
	nhL22
	nhFlood2
)

var (
	addrC = netip.MustParseAddr("10.1.0.12")
	addrD = netip.MustParseAddr("10.1.0.13")
	macC  = model.MAC{2, 0, 0, 0, 0, 0xc}
	macD  = model.MAC{2, 0, 0, 0, 0, 0xd}
	other = netip.MustParseAddr("172.31.0.3") // sends MPLS over UDP only
)

// withLocators gives this node and the node far locators.
func withLocators(f *fib.Tables, own, far netip.Prefix) {
	delete(f.Remotes, layout.AddressOf(farLocator))
	f.Settings.SetLocator(own)
	f.Remotes[layout.AddressOf(far.Addr())] = layout.Remote{ID: 1, Nexthop: nhTunnel, Encaps: layout.Bits(model.Translated), Locators: fib.LocatorsOf(own, far)}
}

// twoTenants changes scene. far and other are remote nodes. VRF 1 has workload A on this
// node, B on far and D on other. VRF 2 has workload C on this node, and another B on other.
func twoTenants(f *fib.Tables) {
	const second = 2
	withLocators(f, netip.PrefixFrom(ownLocator, 64), netip.PrefixFrom(farLocator, 64))
	for i, v := range f.Vifs {
		if v.ID == 2 {
			v.VRF = second
			f.Vifs[i] = v
		}
	}
	v := f.Nexthops[nhVif2]
	v.VRF = second
	f.Nexthops[nhVif2] = v
	t := f.Nexthops[nhTunnel]
	t.Remote, t.Encap = 2, layout.Number(model.MPLSoUDP)
	t.SetPaths(layout.PathOf(local, other, other, t.Path[0].Oif))
	f.Nexthops[nhOther] = t
	f.Nexthops[nhVRF2] = layout.Nexthop{Type: layout.VRFTranslate, VRF: second}
	f.Nexthops[nhL22] = layout.Nexthop{Type: layout.L2Receive, VRF: second}
	f.Nexthops[nhFlood2] = layout.Nexthop{Type: layout.Composite, VRF: second, Flags: layout.NexthopMulticast}
	f.SetMembers(nhFlood, []layout.Member{{Nexthop: nhVif}, {Nexthop: nhTunnelEthernet, Label: 19}})
	f.SetMembers(nhFlood2, []layout.Member{{Nexthop: nhVif2}})
	f.VRFs[second] = layout.VRF{Flood: nhFlood2, Flags: layout.VifL2 | layout.VifL3, RouterMAC: model.RouterMAC, Prefix6: layout.Words96(addrA6)}
	host := func(vrf uint32, a netip.Addr) fib.RouteKey {
		return fib.RouteKey{VRF: vrf, Prefix: netip.PrefixFrom(a, a.BitLen())}
	}
	delete(f.Routes, host(1, addrC))
	f.Routes[host(1, addrD)] = layout.Route{Nexthop: nhOther, Label: 18}
	f.Routes[host(second, addrC)] = layout.Route{Nexthop: nhVif2}
	f.Routes[host(second, addrB)] = layout.Route{Nexthop: nhOther, Label: 20}
	delete(f.Bridge, layout.BridgeKey{VRF: 1, MAC: macC})
	f.Bridge[layout.BridgeKey{VRF: second, MAC: macC}] = layout.BridgeEntry{Nexthop: nhVif2}
	f.Bridge[layout.BridgeKey{VRF: second, MAC: macD}] = layout.BridgeEntry{Nexthop: nhOther, Label: 21}
	f.ILM[20], f.ILM[21] = layout.Target{Nexthop: nhVRF2}, layout.Target{Nexthop: nhL22, Ethernet: 1}
	f.VNIs[1001], f.VNIs[1002] = layout.Target{Nexthop: nhL2, Ethernet: 1}, layout.Target{Nexthop: nhL22, Ethernet: 1}
	f.Remotes[layout.AddressOf(other)] = layout.Remote{ID: 2, Nexthop: nhOther, Encaps: layout.Bits(model.MPLSoUDP)}
	f.Senders[layout.SenderOf(1, 2, netip.MustParsePrefix("10.50.0.0/16"))] = layout.Sender{Known: 1}
	f.Senders[layout.SenderOf(1, 2, netip.MustParsePrefix("10.1.0.0/24"))] = layout.Sender{Known: 1} // contains the addresses of A and B too
	f.Senders[layout.SenderOf(second, 1, netip.Prefix{})] = layout.Sender{Known: 1}
	addStations(f)
}

// fate is what a receiver does with a frame from the fabric.
type fate int

const (
	passes   fate = iota // not a tunnel packet: for the host's stack
	dropped              //
	delivers             // to one workload
	floods               // to the workloads of a network
)

// receiver is a model of fabric_tc: the rules of docs/security.md and RFC 4023, 6040,
// 7348 and 7510 over the tables. It shares no code with the programs.
type receiver struct{ tables fib.Tables }

// tunnelPacket is an outer packet that a receiver accepts.
type tunnelPacket struct {
	sender  layout.Remote
	target  layout.Target
	tos     byte
	payload []byte
	summed  bool // the UDP checksum is not 0
}

// open parses outer headers. f is delivers if the receiver accepts the packet.
func (r receiver) open(b []byte) (p tunnelPacket, f fate) {
	if len(b) < 14 {
		return p, passes
	}
	var source, destination netip.Addr
	var protocol, hops byte
	var rest []byte
	length, fragment := 0, false
	switch ip := b[14:]; binary.BigEndian.Uint16(b[12:]) {
	case 0x0800:
		if len(ip) < 20 || ip[0]&15 != 5 || binary.BigEndian.Uint16(ip[6:])&0x1fff != 0 {
			return p, passes
		}
		source, destination = netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
		p.tos, hops, protocol = ip[1], ip[8], ip[9]
		length, fragment, rest = int(binary.BigEndian.Uint16(ip[2:]))-20, ip[6]&0x20 != 0, ip[20:]
	case 0x86dd:
		if len(ip) < 40 {
			return p, passes
		}
		source, destination = netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40]))
		p.tos, hops, protocol = ip[0]<<4|ip[1]>>4, ip[7], ip[6]
		length, rest = int(binary.BigEndian.Uint16(ip[4:])), ip[40:]
	default:
		return p, passes
	}
	if !isLocal(r.tables.Settings, destination) {
		return p, passes
	}
	encap, shim := encapsulationOf(protocol, rest)
	if encap == "" {
		return p, passes
	}
	if fragment || hops == 0 || length < shim || length > len(rest) || len(rest) < shim {
		return p, dropped
	}
	if protocol == 17 && int(binary.BigEndian.Uint16(rest[4:])) != length {
		return p, dropped
	}
	rest = rest[:length] // padding is no part of the packet
	sender, known := r.tables.Remotes[layout.AddressOf(source)]
	if !known || !sender.Accepts(encap) {
		return p, dropped
	}
	label := rest[shim-4 : shim]
	targets := r.tables.ILM
	number := binary.BigEndian.Uint32(label) >> 12
	if encap == model.VXLAN {
		targets, number = r.tables.VNIs, binary.BigEndian.Uint32(label)>>8
		if rest[8]&8 == 0 {
			return p, dropped
		}
	} else if label[3] == 0 || label[2]&1 == 0 || encap == model.MPLSoGRE && (rest[0] != 0 || rest[1] != 0) {
		return p, dropped
	}
	target, known := targets[number]
	if !known {
		return p, dropped
	}
	p.sender, p.target, p.payload = sender, target, rest[shim:]
	p.summed = protocol == 17 && (rest[6] != 0 || rest[7] != 0)
	return p, delivers
}

// encapsulationOf returns the encapsulation behind an IP header, and the length of its
// headers in bytes; "": it is no tunnel packet.
func encapsulationOf(protocol byte, b []byte) (model.Encapsulation, int) {
	switch {
	case protocol == 47 && len(b) >= 4 && binary.BigEndian.Uint16(b[2:]) == 0x8847:
		return model.MPLSoGRE, 8
	case protocol == 17 && len(b) >= 8 && binary.BigEndian.Uint16(b[2:]) == 6635:
		return model.MPLSoUDP, 12
	case protocol == 17 && len(b) >= 8 && binary.BigEndian.Uint16(b[2:]) == 4789:
		return model.VXLAN, 16
	}
	return "", 0
}

// marked applies RFC 6040's table to an inner IP packet; ok is false if it must be
// dropped.
func marked(outer byte, ip []byte) (out []byte, ok bool) {
	version, inner := ip[0]>>4, ip[1]&3
	if version == 6 {
		inner = ip[1] >> 4 & 3
	}
	mark := inner
	switch {
	case outer&3 == 3 && inner == 0:
		return nil, false
	case outer&3 == 3:
		mark = 3
	case outer&3 == 1 && inner == 2:
		mark = 1
	}
	if mark == inner {
		return ip, true
	}
	ip = slices.Clone(ip)
	if version == 6 {
		ip[1] = ip[1]&^0x30 | mark<<4
		return ip, true
	}
	before := binary.BigEndian.Uint16(ip)
	ip[1] = ip[1]&^3 | mark
	// RFC 1624, equation 3
	sum := uint32(^binary.BigEndian.Uint16(ip[10:])) + uint32(^before) + uint32(binary.BigEndian.Uint16(ip))
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	return ip, true
}

// fateOf returns what happens to a frame, and the frame that a workload gets. The frame is
// nil if it may have any congestion mark: its type and its IP version differ.
func (r receiver) fateOf(b []byte) (fate, []byte) {
	if f, frame, ok := r.direct(b); ok {
		return f, frame
	}
	if f, frame, ok := r.translatedPacket(b); ok {
		return f, frame
	}
	p, f := r.open(b)
	if f != delivers {
		return f, nil
	}
	n := r.tables.Nexthops[p.target.Nexthop]
	if p.target.Ethernet == 0 {
		if len(p.payload) < 20 || p.payload[0]>>4 != 4 && p.payload[0]>>4 != 6 {
			return dropped, nil
		}
		ip, ok := marked(p.tos, p.payload)
		if !ok {
			return dropped, nil
		}
		return r.route(n.VRF, p.sender, ip)
	}
	if len(p.payload) < 14+20 {
		return dropped, nil
	}
	header, ip := p.payload[:14], p.payload[14:]
	kind := binary.BigEndian.Uint16(header[12:])
	isIP := kind == 0x0800 || kind == 0x86dd
	if kind == 0x86dd && len(ip) < 40 { // the kernel does not decapsulate less than a header
		return dropped, nil
	}
	agree := !isIP || ip[0]>>4 == map[uint16]byte{0x0800: 4, 0x86dd: 6}[kind] // Ethernet's type and IP's version
	if isIP && agree {
		var ok bool
		if ip, ok = marked(p.tos, ip); !ok {
			return dropped, nil
		}
	}
	vrf := r.tables.VRFs[n.VRF]
	to, from := model.MAC(header[:6]), model.MAC(header[6:12])
	if isIP && vrf.Flags&layout.VifL3 != 0 && to == vrf.RouterMAC {
		f, frame := r.route(n.VRF, p.sender, ip)
		if !agree {
			frame = nil
		}
		return f, frame
	}
	station, known := r.tables.Bridge[layout.BridgeKey{VRF: n.VRF, MAC: from}]
	if !(known && r.tables.Nexthops[station.Nexthop].Remote == p.sender.ID) && r.tables.Senders[layout.SenderOf(n.VRF, p.sender.ID, netip.Prefix{})].Known == 0 {
		return dropped, nil
	}
	entry, known := r.tables.Bridge[layout.BridgeKey{VRF: n.VRF, MAC: to}]
	if to[0]&1 != 0 || !known {
		return floods, nil
	}
	if r.tables.Nexthops[entry.Nexthop].Type != layout.Encap {
		return dropped, nil
	}
	if !agree {
		return delivers, nil
	}
	return delivers, append(slices.Clone(header), ip...)
}

// isLocal reports whether an address is an underlay address of the node with these settings.
func isLocal(s layout.NodeSettings, a netip.Addr) bool {
	return a.Is4() && slices.Contains(s.Local4[:], layout.Network4(a)) || slices.Contains(s.Local6[:], layout.AddressOf(a))
}

// direct returns the expected result for a frame to a label of this node. ok is false for
// other frames.
func (r receiver) direct(b []byte) (f fate, frame []byte, ok bool) {
	if len(b) < 14 || b[0]&15 != 6 || networkOf(b) == 0 || !isLocal(r.tables.Settings, netip.AddrFrom4([4]byte(b[2:6]))) {
		return passes, nil, false
	}
	sender, known := r.tables.Remotes[layout.AddressOf(netip.AddrFrom4([4]byte(b[8:12])))]
	vrf, here := r.tables.VRFs[networkOf(b)]
	ip := b[14:]
	bridged := b[6]&15 == 2
	switch {
	case b[6]&15 != 6 && !bridged, networkOf(b[6:]) != networkOf(b), !known, !sender.Accepts(model.Direct), !here, !bridged && vrf.Flags&layout.VifL3 == 0, bridged && vrf.Flags&layout.VifL2 == 0, len(ip) < 20:
		return dropped, nil, true
	case binary.BigEndian.Uint16(b[12:]) != map[byte]uint16{4: 0x0800, 6: 0x86dd}[ip[0]>>4]:
		return dropped, nil, true
	}
	f, frame = r.route(networkOf(b), sender, ip)
	if bridged && f == delivers {
		from, to := endsOf(ip)
		source, destination := r.station(networkOf(b), from), r.station(networkOf(b), to)
		if r.tables.Nexthops[source.Nexthop].Remote != sender.ID || destination.MAC.IsZero() {
			return dropped, nil, true
		}
		copy(frame, append(destination.MAC[:], source.MAC[:]...))
	}
	return f, frame, true
}

// station returns the host route of an address if it has a MAC address.
func (r receiver) station(vrf uint32, a netip.Addr) layout.Route {
	if way := r.tables.Routes[fib.RouteKey{VRF: vrf, Prefix: netip.PrefixFrom(a, a.BitLen())}]; !way.MAC.IsZero() {
		return way
	}
	return layout.Route{}
}

// endsOf returns the source and destination of an IP packet; zero: the packet is not IP.
func endsOf(ip []byte) (from, to netip.Addr) {
	switch {
	case ip[0]>>4 == 4:
		return netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
	case ip[0]>>4 == 6 && len(ip) >= 40:
		return netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40]))
	}
	return from, to
}

// translatedPacket returns the expected result for a packet to this node's locator. ok is false
// for other packets, and for ICMPv6 errors.
func (r receiver) translatedPacket(b []byte) (f fate, frame []byte, ok bool) {
	if len(b) < 14+40 || binary.BigEndian.Uint16(b[12:]) != 0x86dd {
		return passes, nil, false
	}
	ip, rest := b[14:54], b[54:]
	isEcho := len(rest) > 0 && (rest[0] == 128 || rest[0] == 129)
	to, s := layout.Words96(netip.AddrFrom16([16]byte(ip[24:40]))), r.tables.Settings
	isOwn := s.Locator != [2]uint32{} && [2]uint32(to[:2]) == s.Locator && uint16(to[2])&s.LocatorMask == s.LocatorEnd
	if !isOwn || ip[24+10] == 0 && ip[24+11] == 0 || ip[6] == 58 && len(rest) > 0 && rest[0] < 128 {
		return passes, nil, false
	}
	sender, known := r.senderOf(ip[8:24])
	fields := [][]byte{ip[8+10 : 20], ip[24+10 : 36]} // the fields with a network
	switch sender.Locators {
	case fib.Locators80Adjustment:
		fields[1] = fields[0]
	case fib.Locators80Network:
		fields[0] = fields[1]
	}
	network, v6 := uint32(binary.BigEndian.Uint16(fields[1])&0x7fff), fields[1][0]&0x80 != 0
	vrf, here := r.tables.VRFs[network]
	length := int(binary.BigEndian.Uint16(ip[4:]))
	var prefix [12]byte // the first 96 bits of the workloads' addresses
	for i := range prefix {
		if v6 {
			prefix[i] = byte(vrf.Prefix6[i/4] >> (i % 4 * 8))
		}
	}
	sum := 2 * uint32(sum16(prefix[:])) % 0xffff
	switch {
	case !bytes.Equal(fields[0], fields[1]), !known, !sender.Accepts(model.Translated), !here, vrf.Flags&layout.VifL3 == 0:
		return dropped, nil, true
	case ip[7] == 0, length > len(rest), (uint32(sum16(ip[8:20]))+uint32(sum16(ip[24:36])))%0xffff != sum:
		return dropped, nil, true
	case v6:
		out := slices.Concat(ip[:8], prefix[:], ip[20:24], prefix[:], ip[36:40], rest)
		out[1], out[2], out[3] = out[1]&0xf0, 0, 0
		f, frame = r.route(network, sender, out)
		return f, frame, true
	case length < 8, ip[6] != 6 && ip[6] != 17 && ip[6] != 58, ip[6] == 58 && !isEcho:
		return dropped, nil, true
	}
	out := binary.BigEndian.AppendUint16([]byte{0x45, ip[0]<<4 | ip[1]>>4}, uint16(length+20))
	out = append(append(out, 0, 0, 0x40, 0, ip[7], ip[6], 0, 0), ip[20:24]...)
	out = append(append(out, ip[36:40]...), rest...)
	if ip[6] == 58 {
		out[9], out[20] = 1, map[byte]byte{128: 8, 129: 0}[rest[0]]
		pseudo := slices.Concat(ip[8:40], ip[4:6], []byte{0, 58, rest[0], 0}, []byte{^out[20], 0xff})
		sum := uint32(binary.BigEndian.Uint16(out[22:])) + uint32(sum16(pseudo))
		binary.BigEndian.PutUint16(out[22:], uint16(sum%0xffff)) // never 0xffff: RFC 1624, section 3
	}
	binary.BigEndian.PutUint16(out[10:], ^sum16(out[:20]))
	f, frame = r.route(network, sender, out)
	return f, frame, true
}

// senderOf returns the node whose locator contains an IPv6 address.
func (r receiver) senderOf(address []byte) (layout.Remote, bool) {
	for _, length := range []int{8, 10} {
		key := netip.AddrFrom16([16]byte(append(slices.Clone(address[:length]), make([]byte, 16-length)...)))
		if sender, known := r.tables.Remotes[layout.AddressOf(key)]; known && sender.Locators != fib.NoLocators {
			return sender, true
		}
	}
	return layout.Remote{}, false
}

// networkOf returns the number of the network in a label.
func networkOf(mac []byte) uint32 { return uint32(mac[0]&0xf0)<<4 | uint32(mac[1]) }

// route delivers an inner IP packet to a workload of this node.
func (r receiver) route(vrf uint32, sender layout.Remote, ip []byte) (fate, []byte) {
	from, to := endsOf(ip)
	kind := map[bool]uint16{true: 0x0800, false: 0x86dd}[from.Is4()]
	if !from.IsValid() || !r.maySend(vrf, sender, from) {
		return dropped, nil
	}
	for bits := to.BitLen(); bits >= 0; bits-- {
		p, _ := to.Prefix(bits)
		if way, ok := r.tables.Routes[fib.RouteKey{VRF: vrf, Prefix: p}]; ok {
			n := r.tables.Nexthops[way.Nexthop]
			if n.Type != layout.Encap {
				return dropped, nil
			}
			return delivers, append(binary.BigEndian.AppendUint16(append(slices.Clone(n.DMAC[:]), n.SMAC[:]...), kind), ip...)
		}
	}
	return dropped, nil
}

// maySend reports whether an inner source address belongs to a sender.
func (r receiver) maySend(vrf uint32, sender layout.Remote, from netip.Addr) bool {
	if way, ok := r.tables.Routes[fib.RouteKey{VRF: vrf, Prefix: netip.PrefixFrom(from, from.BitLen())}]; ok {
		n := r.tables.Nexthops[way.Nexthop]
		if n.Type == layout.Tunnel && n.Remote == sender.ID {
			return true
		}
		anyStation := r.tables.Senders[layout.SenderOf(vrf, sender.ID, netip.Prefix{})].Known == 1
		if (n.Type == layout.Tunnel || n.Type == layout.Encap) && !anyStation {
			return false
		}
	}
	for bits := range from.BitLen() + 1 {
		if r.tables.Senders[layout.SenderOf(vrf, sender.ID, netip.PrefixFrom(from, bits))].Known == 1 {
			return true
		}
	}
	return false
}

// hostile builds outer packets from few values, so that many packets pass many checks.
type hostile struct {
	*rand.Rand
	own, far netip.Prefix // locators, if one or both have 80 bits; else zero
}

func (h hostile) oneIn(n int) bool { return h.IntN(n) == 0 }

func of[T any](h hostile, all ...T) T { return all[h.IntN(len(all))] }

func (h hostile) ip(v6 bool, tos, hops, protocol byte, from, to netip.Addr, payload []byte) []byte {
	if v6 {
		b := append(binary.BigEndian.AppendUint16([]byte{6<<4 | tos>>4, tos << 4, 0, 0}, uint16(len(payload))), protocol, hops)
		return append(append(append(b, from.AsSlice()...), to.AsSlice()...), payload...)
	}
	b := append(binary.BigEndian.AppendUint16([]byte{4<<4 | 5, tos}, uint16(20+len(payload))), 0, 0, 0, 0, hops, protocol, byte(h.Uint32()), byte(h.Uint32()))
	return append(append(append(b, from.AsSlice()...), to.AsSlice()...), payload...)
}

// inner returns an IP packet or an Ethernet frame.
func (h hostile) inner(ethernet bool) []byte {
	payload := make([]byte, 8+h.IntN(40))
	const unassigned = 253 // RFC 3692: a protocol without checksum
	tos := byte(h.IntN(4))
	v6 := h.oneIn(4)
	ip := h.ip(false, tos, 9, unassigned, of(h, addrB, addrB, addrD, addrA, addrC, netip.MustParseAddr("10.50.1.1"), netip.MustParseAddr("10.1.0.99")),
		of(h, addrA, addrA, addrC, addrC, addrB, addrD, netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.1.0.77")), payload)
	if v6 {
		ip = h.ip(true, tos, 9, unassigned, of(h, addrB6, addrB6, addrA6, netip.MustParseAddr("fe80::1")), of(h, addrA6, addrA6, addrB6, netip.MustParseAddr("ff02::1")), payload)
	}
	if !ethernet {
		return ip
	}
	to, from := of(h, model.RouterMAC, macA, macC, macB, model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, model.MAC{2, 9}), of(h, macB, macB, macD, macA, model.MAC{2, 9})
	kind := uint16(0x0800)
	if v6 {
		kind = 0x86dd
	}
	if h.oneIn(8) {
		kind = 0x0806
	}
	return append(binary.BigEndian.AppendUint16(append(slices.Clone(to[:]), from[:]...), kind), ip...)
}

// frame returns a tunnel packet. Now and then one field of its headers is wrong.
func (h hostile) frame() []byte {
	label := of[uint32](h, 18, 18, 19, 20, 21, 22)
	encap := of(h, model.MPLSoUDP, model.MPLSoUDP, model.MPLSoGRE, model.VXLAN)
	ethernet := label == 19 || label == 21
	entry := label<<12 | 1<<8 | 60
	if h.oneIn(20) {
		entry &^= of[uint32](h, 1<<8, 0xff)
	}
	var shim []byte
	protocol := byte(17)
	switch encap {
	case model.MPLSoGRE:
		protocol, shim = 47, binary.BigEndian.AppendUint32([]byte{0, 0, 0x88, 0x47}, entry)
		if h.oneIn(20) {
			shim[of(h, 0, 1, 3)] ^= 1 << h.IntN(8)
		}
	case model.MPLSoUDP:
		shim = binary.BigEndian.AppendUint32([]byte{0xc0, 0, 6635 >> 8, 6635 & 0xff, 0, 0, 0, 0}, entry)
	case model.VXLAN:
		ethernet, shim = true, binary.BigEndian.AppendUint32([]byte{0xc0, 0, 4789 >> 8, 4789 & 0xff, 0, 0, 0, 0, 8, 0, 0, 0}, of[uint32](h, 1001, 1002, 1003)<<8)
		if h.oneIn(20) {
			shim[8] = 0
		}
	}
	body := append(shim, h.inner(ethernet)...)
	if protocol == 17 {
		binary.BigEndian.PutUint16(body[4:], uint16(len(body)))
	}
	if h.oneIn(4) {
		return h.direct()
	}
	if h.oneIn(4) {
		return h.packetToLocator()
	}
	v6, hops := h.oneIn(3), byte(64)
	if h.oneIn(30) {
		hops = 0
	}
	kind, from, to := uint16(0x0800), of(h, far, far, far, other, other, netip.MustParseAddr("172.31.0.99"), local), of(h, local, local, local, local, far)
	if v6 {
		kind, from, to = 0x86dd, of(h, far6, far6, netip.MustParseAddr("fd31::99")), of(h, local6, local6, local6, far6)
	}
	b := binary.BigEndian.AppendUint16([]byte{2, 0xfa, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xb}, kind)
	b = append(b, h.ip(v6, byte(h.IntN(4)), hops, protocol, from, to, body)...)
	if !v6 && h.oneIn(30) {
		b[14+6] = of[byte](h, 0x20, 0x40, 1)
	}
	if h.oneIn(10) { // the end of the inner packet, or zeros, become padding
		ip, udp := 14+2, 14+20+4
		if v6 {
			ip, udp = 14+4, 14+40+4
		}
		cut := uint16(of(h, 0, h.IntN(60)))
		for _, at := range of(h, []int{ip, udp}, []int{ip, udp}, []int{ip}, []int{udp}) {
			if at == ip || protocol == 17 {
				binary.BigEndian.PutUint16(b[at:], binary.BigEndian.Uint16(b[at:])-cut)
			}
		}
		b = append(b, make([]byte, h.IntN(40))...)
	}
	return b
}

// direct returns a frame without a tunnel. Some labels are wrong.
func (h hostile) direct() []byte {
	network := of[uint32](h, 1, 1, 1, 2, 3)
	to := direct.Label(network, of(h, local, local, local, local, local, far))
	if h.oneIn(20) {
		network = of[uint32](h, 0, 1, 2, 300)
	}
	from := direct.Label(network, of(h, far, far, far, far, other, netip.MustParseAddr("172.31.0.99"), local))
	if h.oneIn(2) {
		from[0] ^= 4 // a bridged frame
	}
	if h.oneIn(30) {
		from[0] ^= 1 << h.IntN(4)
	}
	ip := h.inner(false)
	kind := map[byte]uint16{4: 0x0800, 6: 0x86dd}[ip[0]>>4]
	if h.oneIn(30) {
		kind = of[uint16](h, 0, 0x0806, 0x0800, 0x86dd)
	}
	return append(binary.BigEndian.AppendUint16(append(slices.Clone(to[:]), from[:]...), kind), ip...)
}

// packetToLocator returns a packet to a locator. Some of its fields are wrong.
func (h hostile) packetToLocator() []byte {
	network := of[uint16](h, 1, 1, 1, 2, 3)
	destination, source := of(h, addrA, addrA, addrC, addrB, netip.MustParseAddr("10.1.0.77")), of(h, addrB, addrB, addrB, addrD, addrA, netip.MustParseAddr("10.1.0.99"))
	if h.oneIn(2) {
		destination, source = of(h, addrA6, addrA6, addrB6, netip.MustParseAddr("fd00:1:1::10")), of(h, addrB6, addrB6, addrB6, addrA6, netip.MustParseAddr("fd00:1:1::11"))
	}
	var from, to netip.Addr
	if h.own.IsValid() {
		to, from = inLocators(of(h, h.own, h.own, h.own, h.far), of(h, h.far, h.far, h.far, h.own, netip.MustParsePrefix("fd77:9:9:9:77::/80")), network, destination, source)
		if h.oneIn(20) {
			b := of(h, from, to).As16()
			b[8+h.IntN(4)] ^= 1 << h.IntN(8)
			to = netip.AddrFrom16(b)
		}
	} else {
		to = inLocator(of(h, ownLocator, ownLocator, ownLocator, farLocator), network, destination)
		if h.oneIn(20) {
			network, source = of[uint16](h, 0, 1, 2, 300), of(h, source, addrB, addrB6)
		}
		from = inLocator(of(h, farLocator, farLocator, farLocator, ownLocator, netip.MustParseAddr("fd77:0:0:9::")), network, source)
	}
	payload := make([]byte, 4+h.IntN(40))
	for i := range payload {
		payload[i] = byte(h.Uint32())
	}
	payload[0] = of[byte](h, 128, 129, 128, 129, 130, 1)
	ip := h.ip(true, byte(h.Uint32()), of[byte](h, 0, 1, 64, 64, 64), of[byte](h, 6, 6, 17, 58, 58, 253, 44), from, to, payload)
	if h.oneIn(20) {
		binary.BigEndian.PutUint16(ip[4:], uint16(h.Uint32()))
	}
	return append([]byte{2, 0xfa, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xb, 0x86, 0xdd}, ip...)
}

// TestHostilePacketsMatchTheModel compares the programs of the fabric with a
// model. Packets as hostile builds them have the same fate in both. Of packets whose
// bits are changed at random, the programs deliver none that the model refuses.
func TestHostilePacketsMatchTheModel(t *testing.T) {
	type variant struct {
		name     string
		changed  bool
		own, far netip.Prefix
	}
	variants := []variant{{name: "packets as built"}, {name: "changed packets", changed: true}}
	for _, p := range locatorPairs {
		variants = append(variants, variant{name: fmt.Sprintf("locators %s and %s", p.own, p.far), own: p.own, far: p.far})
	}
	for _, v := range variants {
		changed := v.changed
		t.Run(v.name, func(t *testing.T) {
			r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
				twoTenants(f)
				if v.own.IsValid() {
					withLocators(f, v.own, v.far)
				}
			})
			m := receiver{r.tables}
			seed := uint64(os.Getpid())
			h := hostile{rand.New(rand.NewPCG(seed, 7)), v.own, v.far}
			var fates [floods + 1]uint64
			taken := 0
			for i := range fuzzPackets(t) {
				b := h.frame()
				if changed {
					b = h.change(b)
				}
				want, frame := m.fateOf(b)
				fates[want]++
				if _, meta, out := r.xdp(t, b); meta != nil {
					taken++
					r.checkTaken(t, m, b, meta, out)
				}
				code, out := r.run(t, r.programs.FabricTc, r.fabric, b)
				switch {
				case code == notRun:
				case code == actRedirect && want == delivers && (frame == nil || bytes.Equal(out, frame)):
				case code == actRedirect:
					t.Fatalf("seed %d, packet %d: delivered\n%x, want fate %d\n%x, of\n%x", seed, i, out, want, frame, b)
				case !changed && (code == actUnspec) != (want == passes), !changed && want == delivers:
					t.Fatalf("seed %d, packet %d: action %d, want fate %d: %x; drops %s", seed, i, int32(code), want, b, r.drop(t, nil))
				}
			}
			o, err := r.Outcomes()
			t.Logf("%d passed, %d dropped, %d delivered, %d flooded by the model; XDP took %d; %+v", fates[passes], fates[dropped], fates[delivers], fates[floods], taken, o)
			if err != nil || o.Replicated > fates[floods] || !changed && o.Replicated != fates[floods] {
				t.Errorf("%d packets were flooded, the model floods %d: %v", o.Replicated, fates[floods], err)
			}
			if slices.Contains(fates[:], 0) || taken == 0 {
				t.Error("a fate did not occur: the packets prove too little")
			}
		})
	}
}

// checkTaken fails if XDP took a packet that the model refuses, or wrote other
// metadata.
func (r *rig) checkTaken(t *testing.T, m receiver, b, meta, out []byte) {
	t.Helper()
	p, f := m.open(b)
	if f != delivers || p.summed {
		t.Fatalf("XDP took a packet of fate %d: %x", f, b)
	}
	nexthop, remote := binary.NativeEndian.Uint32(meta[metaNexthop:]), binary.NativeEndian.Uint32(meta[metaNexthop+4:])
	if p.target.Ethernet == 0 {
		out = out[14:]
	}
	if nexthop != p.target.Nexthop || remote != p.sender.ID || !bytes.Equal(out, p.payload) {
		t.Fatalf("XDP: nexthop %d, remote %d\n%x, want %d, %d\n%x", nexthop, remote, out, p.target.Nexthop, p.sender.ID, p.payload)
	}
}

// change changes some bits or the length of a packet.
func (h hostile) change(b []byte) []byte {
	switch h.IntN(4) {
	case 0:
		b = b[:15+h.IntN(len(b)-14)]
	case 1:
		b = append(b, make([]byte, h.IntN(200))...)
	}
	for range 1 + h.IntN(3) {
		b[h.IntN(len(b))] ^= 1 << h.IntN(8)
	}
	return b
}
