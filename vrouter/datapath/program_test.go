package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// Return values of programs.
const (
	actUnspec   = 0xffffffff
	actShot     = 2
	actRedirect = 7
	xdpPass     = 2
	notRun      = 0x7fffffff
)

// Size of struct meta in bpf/meta.h, and the offset of its nexthop, in bytes.
const (
	metaBytes   = 20
	metaNexthop = 12
)

// rig is a datapath on three devices with a scene in its maps.
type rig struct {
	*Datapath
	vif, vif2, fabric int
	tables            fib.Tables
}

func newRig(t testing.TB, encap model.Encapsulation, v6 bool, change func(*fib.Tables)) *rig {
	t.Helper()
	devices := enterSpace(t, 3)
	r := &rig{Datapath: shared(t), vif: devices[0], vif2: devices[1], fabric: devices[2]}
	r.tables = scene(r.vif, r.vif2, r.fabric, encap, v6)
	if change != nil {
		change(&r.tables)
	}
	must.Get(r.Apply(r.tables))(t)
	return r
}

// run gives a tc program one frame from a device.
func (r *rig) run(t testing.TB, p *ebpf.Program, ifindex int, frame []byte) (code uint32, out []byte) {
	t.Helper()
	context := make([]byte, contextBytes)
	binary.NativeEndian.PutUint32(context[contextIngress:], uint32(ifindex))
	binary.NativeEndian.PutUint32(context[contextIfindex:], uint32(ifindex))
	out = make([]byte, len(frame)+256)
	o := ebpf.RunOptions{Data: frame, DataOut: out, Context: context}
	code, err := p.Run(&o)
	if errors.Is(err, unix.EINVAL) && len(frame) < 14+40 {
		return notRun, nil // shorter than the kernel's test takes for its protocol
	}
	if err != nil {
		t.Fatalf("run %s: %v, with %x", p, err, frame)
	}
	return code, o.DataOut
}

// xdp gives fabric_xdp one frame. Of a frame that it took the metadata comes
// first; it is returned apart.
func (r *rig) xdp(t testing.TB, frame []byte) (code uint32, meta, out []byte) {
	t.Helper()
	out = make([]byte, len(frame)+256)
	o := ebpf.RunOptions{Data: frame, DataOut: out}
	code = must.Get(r.programs.FabricXdp.Run(&o))(t)
	if string(o.DataOut) == string(frame) {
		return code, nil, o.DataOut
	}
	return code, o.DataOut[:metaBytes], o.DataOut[metaBytes:]
}

// drop returns the one reason that was counted since the last call.
func (r *rig) drop(t *testing.T, before map[layout.DropKey]uint64) string {
	t.Helper()
	after := must.Get(r.Drops())(t)
	reason := "none"
	for k, n := range after {
		switch n - before[k] {
		case 0:
		case 1:
			if reason != "none" {
				t.Errorf("two reasons: %s and %s", reason, ReasonOf(k.Reason).Name)
			}
			reason = ReasonOf(k.Reason).Name
		default:
			t.Errorf("%s counted %d times", ReasonOf(k.Reason).Name, n-before[k])
		}
	}
	return reason
}

func hw(m model.MAC) net.HardwareAddr { return net.HardwareAddr(m[:]) }

func serialize(t testing.TB, l ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	must.Succeed(t, gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...))
	return append([]byte(nil), b.Bytes()...)
}

// packet is an IP packet with UDP in it.
func packet(t testing.TB, from, to netip.Addr, tos, ttl uint8, payload string) []byte {
	t.Helper()
	udp := &layers.UDP{SrcPort: 1234, DstPort: 80}
	if from.Is4() {
		ip := &layers.IPv4{Version: 4, TTL: ttl, TOS: tos, Id: 7, Protocol: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: to.AsSlice(), Flags: layers.IPv4DontFragment}
		udp.SetNetworkLayerForChecksum(ip)
		return serialize(t, ip, udp, gopacket.Payload(payload))
	}
	ip := &layers.IPv6{Version: 6, HopLimit: ttl, TrafficClass: tos, NextHeader: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	udp.SetNetworkLayerForChecksum(ip)
	return serialize(t, ip, udp, gopacket.Payload(payload))
}

func frame(src, dst model.MAC, ip []byte) []byte {
	proto := uint16(0x0800)
	if ip[0]>>4 == 6 {
		proto = 0x86dd
	}
	b := append(append(append([]byte{}, dst[:]...), src[:]...), byte(proto>>8), byte(proto))
	return append(b, ip...)
}

// wrapped is an inner packet or frame in outer headers, as RFC 4023, 7510 and
// 7348 have them, built here and not by the code under test.
func wrapped(t testing.TB, encap model.Encapsulation, v6 bool, label uint32, tos uint8, inner []byte) []byte {
	t.Helper()
	var shim []byte
	switch encap {
	case model.MPLSoGRE:
		shim = binary.BigEndian.AppendUint32([]byte{0, 0, 0x88, 0x47}, label<<12|1<<8|60)
	case model.MPLSoUDP:
		shim = binary.BigEndian.AppendUint32(nil, label<<12|1<<8|60)
	case model.VXLAN:
		shim = binary.BigEndian.AppendUint32([]byte{8, 0, 0, 0}, label<<8)
	}
	body := append(shim, inner...)
	protocol := layers.IPProtocolUDP
	if encap == model.MPLSoGRE {
		protocol = layers.IPProtocolGRE
	} else {
		port := uint16(6635)
		if encap == model.VXLAN {
			port = 4789
		}
		head := binary.BigEndian.AppendUint16(nil, 50000)
		head = binary.BigEndian.AppendUint16(head, port)
		head = binary.BigEndian.AppendUint16(head, uint16(8+len(body)))
		body = append(append(head, 0, 0), body...)
	}
	eth := &layers.Ethernet{SrcMAC: hw(macB), DstMAC: net.HardwareAddr{2, 0xfa, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv4}
	if v6 {
		eth.EthernetType = layers.EthernetTypeIPv6
		return serialize(t, eth, &layers.IPv6{Version: 6, HopLimit: 64, TrafficClass: tos, NextHeader: protocol, SrcIP: far6.AsSlice(), DstIP: local6.AsSlice()}, gopacket.Payload(body))
	}
	return serialize(t, eth, &layers.IPv4{Version: 4, TTL: 64, TOS: tos, Protocol: protocol, SrcIP: far.AsSlice(), DstIP: local.AsSlice(), Flags: layers.IPv4DontFragment}, gopacket.Payload(body))
}

func labelOf(encap model.Encapsulation, ethernet bool) uint32 {
	switch {
	case encap == model.VXLAN:
		return 1001
	case ethernet:
		return 19
	}
	return 18
}

// outerOf checks the outer headers of a frame that left, and returns label or
// VNI, the inner part, and the outer traffic class.
func outerOf(t *testing.T, encap model.Encapsulation, v6 bool, out []byte) (label uint32, inner []byte, tos uint8) {
	t.Helper()
	var src, dst net.IP
	var ttl uint8
	rest := out[14:]
	if v6 {
		var ip layers.IPv6
		if err := ip.DecodeFromBytes(rest, gopacket.NilDecodeFeedback); err != nil || int(ip.Length)+54 != len(out) {
			t.Fatalf("outer IPv6: %+v, %v", ip, err)
		}
		src, dst, ttl, tos, rest = ip.SrcIP, ip.DstIP, ip.HopLimit, ip.TrafficClass, rest[40:]
	} else {
		var ip layers.IPv4
		if err := ip.DecodeFromBytes(rest, gopacket.NilDecodeFeedback); err != nil || int(ip.Length)+14 != len(out) || ip.Flags != layers.IPv4DontFragment || sum16(rest[:20]) != 0xffff {
			t.Fatalf("outer IPv4: %+v, %v", ip, err)
		}
		src, dst, ttl, tos, rest = ip.SrcIP, ip.DstIP, ip.TTL, ip.TOS, rest[20:]
	}
	wantSrc, wantDst := local, far
	if v6 {
		wantSrc, wantDst = local6, far6
	}
	if !src.Equal(wantSrc.AsSlice()) || !dst.Equal(wantDst.AsSlice()) || ttl != 64 {
		t.Errorf("outer %v to %v, TTL %d", src, dst, ttl)
	}
	if encap != model.MPLSoGRE {
		port, length := binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[4:])
		if port < 49152 || int(length) != len(rest) {
			t.Errorf("outer UDP: source port %d, length %d of %d", port, length, len(rest))
		}
		if summed := binary.BigEndian.Uint16(rest[6:]) != 0; summed != v6 || v6 && udpSum(out) != 0xffff {
			t.Errorf("outer UDP checksum %x: IPv4 has none, IPv6 needs a right one", rest[6:8])
		}
		must.Equal(t, map[model.Encapsulation]uint16{model.MPLSoUDP: 6635, model.VXLAN: 4789}[encap], binary.BigEndian.Uint16(rest[2:]))
		rest = rest[8:]
	} else {
		if binary.BigEndian.Uint32(rest) != 0x8847 {
			t.Errorf("GRE header %x", rest[:4])
		}
		rest = rest[4:]
	}
	if encap == model.VXLAN {
		if rest[0] != 8 {
			t.Errorf("VXLAN flags %x", rest[:4])
		}
		return binary.BigEndian.Uint32(rest[4:]) >> 8, rest[8:], tos
	}
	entry := binary.BigEndian.Uint32(rest)
	if entry&0x100 == 0 {
		t.Errorf("label entry %08x is not the bottom of the stack", entry)
	}
	if exp := entry >> 9 & 7; uint8(exp) != tos>>5 {
		t.Errorf("traffic class %d for outer TOS %#x", exp, tos)
	}
	return entry >> 12, rest[4:], tos
}

func sum16(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

var allEncaps = []model.Encapsulation{model.MPLSoGRE, model.MPLSoUDP, model.VXLAN}

// everyTunnel runs a test for each encapsulation over each underlay.
func everyTunnel(t *testing.T, f func(t *testing.T, encap model.Encapsulation, v6 bool)) {
	for _, encap := range allEncaps {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/v6=%v", encap, v6), func(t *testing.T) { f(t, encap, v6) })
		}
	}
}

func TestARoutedPacketLeavesInItsTunnel(t *testing.T) {
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		r := newRig(t, encap, v6, nil)
		for _, to := range []netip.Addr{addrB, addrB6} {
			from := addrA
			if to.Is6() {
				from = addrA6
			}
			const tos = 0xb8 | 2 // EF, ECT(0)
			code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, from, to, tos, 64, "hello")))
			if code != actRedirect {
				t.Fatalf("to %s: action %d, %s", to, code, r.drop(t, nil))
			}
			label, inner, outerTOS := outerOf(t, encap, v6, out)
			if label != labelOf(encap, false) || outerTOS != tos {
				t.Errorf("label %d, outer TOS %#x", label, outerTOS)
			}
			if encap == model.VXLAN {
				if model.MAC(inner[:6]) != model.RouterMAC || model.MAC(inner[6:12]) != model.RouterMAC {
					t.Errorf("inner Ethernet %x", inner[:14])
				}
				inner = inner[14:]
			}
			if want := packet(t, from, to, tos, 63, "hello"); string(inner) != string(want) {
				t.Errorf("inner packet\n%x, want one hop less and nothing else changed\n%x", inner, want)
			}
		}
	})
}

func TestABridgedFrameLeavesAsItIs(t *testing.T) {
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		r := newRig(t, encap, v6, nil)
		want := frame(macA, macB, packet(t, addrA, addrB, 0, 1, "hello"))
		code, out := r.run(t, r.programs.FromWorkload, r.vif, want)
		if code != actRedirect {
			t.Fatalf("action %d, %s", code, r.drop(t, nil))
		}
		label, inner, _ := outerOf(t, encap, v6, out)
		if label != labelOf(encap, true) || string(inner) != string(want) {
			t.Errorf("label %d\n%x, want\n%x", label, inner, want)
		}
	})
}

// What comes from the fabric ends at the workload, by XDP and tc, or by tc
// alone, with the same bytes.
func TestAPacketFromTheFabricArrives(t *testing.T) {
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		r := newRig(t, encap, v6, nil)
		for _, to := range []netip.Addr{addrA, addrA6} {
			from := addrB
			if to.Is6() {
				from = addrB6
			}
			ip := packet(t, from, to, 1, 9, "payload of some length")
			bridged := frame(macB, macA, ip)
			routed := frame(model.RouterMAC, model.RouterMAC, ip)
			type arrival struct {
				ethernet bool
				inner    []byte
				want     []byte
			}
			cases := []arrival{{true, bridged, bridged}, {true, routed, frame(model.RouterMAC, macA, ip)}}
			if encap != model.VXLAN {
				cases = append(cases, arrival{false, ip, frame(model.RouterMAC, macA, ip)})
			}
			for i, c := range cases {
				outer := wrapped(t, encap, v6, labelOf(encap, c.ethernet), 1, c.inner)
				code, out := r.run(t, r.programs.FabricTc, r.fabric, outer)
				if code != actRedirect || string(out) != string(c.want) {
					t.Errorf("to %s, case %d by tc: action %d, %s\n%x, want\n%x", to, i, code, r.drop(t, nil), out, c.want)
				}
				code, meta, out := r.xdp(t, outer)
				nexthop := map[bool]uint32{false: nhVRF, true: nhL2}[c.ethernet]
				if code != xdpPass || meta == nil || binary.NativeEndian.Uint32(meta[metaNexthop:]) != nexthop || string(out[14:]) != string(ip) {
					t.Fatalf("to %s, case %d by XDP: action %d, metadata %x\n%x, want the end\n%x", to, i, code, meta, out, ip)
				}
				if !c.ethernet && out[0] != 2 {
					t.Errorf("the stand-in address is %x; the host must take it for another's", out[:6])
				}
			}
		}
		if o, err := r.Outcomes(); err != nil || o.Received != o.Forwarded || o.Decapped != o.Forwarded {
			t.Errorf("outcomes %+v, %v", o, err)
		}
	})
}

// RFC 6040, section 4.2, every combination.
func TestCongestionMarksAreMergedByDecapsulation(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, nil)
	want := [4][4]int{ // by outer, then inner; -1: dropped
		{0, 1, 2, 3},
		{0, 1, 1, 3},
		{0, 1, 2, 3},
		{-1, 3, 3, 3},
	}
	for outer := range uint8(4) {
		for inner := range uint8(4) {
			for _, to := range []netip.Addr{addrA, addrA6} {
				from := addrB
				if to.Is6() {
					from = addrB6
				}
				before := must.Get(r.Drops())(t)
				packetIn := wrapped(t, model.MPLSoUDP, false, 18, 0x48|outer, packet(t, from, to, 0x88|inner, 9, "x"))
				code, out := r.run(t, r.programs.FabricTc, r.fabric, packetIn)
				if want[outer][inner] < 0 {
					if code != actShot || r.drop(t, before) != "ecn" {
						t.Errorf("outer %d, inner %d: action %d", outer, inner, code)
					}
					continue
				}
				expect := frame(model.RouterMAC, macA, packet(t, from, to, 0x88|uint8(want[outer][inner]), 9, "x"))
				if code != actRedirect || string(out) != string(expect) {
					t.Errorf("outer %d, inner %d to %s: action %d\n%x, want\n%x", outer, inner, to, code, out, expect)
				}
				// XDP takes the frame only where no mark changes.
				_, meta, _ := r.xdp(t, packetIn)
				if taken := meta != nil; taken != (want[outer][inner] == int(inner)) {
					t.Errorf("outer %d, inner %d: XDP took it: %v", outer, inner, taken)
				}
			}
		}
	}
}

func TestPacketsBetweenTwoWorkloadsOfANodeStayOnIt(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, nil)
	c := netip.MustParseAddr("10.1.0.12")
	code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, c, 0, 64, "x")))
	want := frame(model.RouterMAC, model.MAC{2, 0, 0, 0, 0, 0xc}, packet(t, addrA, c, 0, 63, "x"))
	if code != actRedirect || string(out) != string(want) {
		t.Errorf("action %d\n%x, want\n%x", code, out, want)
	}
	stats, err := r.VRFStats()
	if err != nil || stats[1].TxPackets[0] != 1 {
		t.Errorf("counted %+v, %v", stats, err)
	}
}

// Each reason by a packet that deserves it.
func TestEveryRefusalHasItsReason(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, nil)
	good := packet(t, addrB, addrA, 0, 9, "x")
	udp := func(change func([]byte)) []byte {
		b := wrapped(t, model.MPLSoUDP, false, 18, 0, good)
		change(b)
		return b
	}
	other := netip.MustParseAddr("10.7.7.7")
	for _, c := range []struct {
		reason   string
		workload []byte
		fabric   []byte
	}{
		{"spoofed_mac", frame(macB, model.RouterMAC, packet(t, addrA, addrB, 0, 9, "x")), nil},
		{"spoofed_ip", frame(macA, model.RouterMAC, packet(t, addrB, addrA, 0, 9, "x")), nil},
		{"spoofed_ip", frame(macA, model.RouterMAC, packet(t, addrB6, addrA6, 0, 9, "x")), nil},
		{"no_route", frame(macA, model.RouterMAC, packet(t, addrA, other, 0, 9, "x")), nil},
		{"ttl_exceeded", frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 1, "x")), nil},
		{"too_big", frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 9, string(make([]byte, 1403)))), nil},
		{"malformed", frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 9, "x")[:24]), nil},
		{"unknown_label", nil, wrapped(t, model.MPLSoUDP, false, 777, 0, good)},
		{"unknown_vni", nil, wrapped(t, model.VXLAN, false, 777, 0, frame(macB, macA, good))},
		{"unknown_source", nil, udp(func(b []byte) { b[29] = 99; fixIPv4(b) })},
		{"label_stack", nil, udp(func(b []byte) { b[14+20+8+2] &^= 1 })},
		{"outer_ttl", nil, udp(func(b []byte) { b[14+20+8+3] = 0 })},
		{"outer_ttl", nil, udp(func(b []byte) { b[14+8] = 0; fixIPv4(b) })},
		{"outer_fragment", nil, udp(func(b []byte) { b[14+6] = 0x20; fixIPv4(b) })},
		{"outer_length", nil, udp(func(b []byte) { b[14+2], b[14+3] = 1, 200; fixIPv4(b) })},
		{"outer_checksum", nil, udp(func(b []byte) { b[14+20+6], b[14+20+7] = 0x12, 0x34 })},
		{"bad_inner", nil, udp(func(b []byte) { b[14+20+8+4] = 0xf0 })},
		{"bad_gre", nil, func() []byte {
			b := wrapped(t, model.MPLSoGRE, false, 18, 0, good)
			b[14+20] = 0x20 // a key
			return b
		}()},
		{"bad_vxlan", nil, func() []byte {
			b := wrapped(t, model.VXLAN, false, 1001, 0, frame(macB, macA, good))
			b[14+28] = 0
			return b
		}()},
		{"no_route", nil, wrapped(t, model.MPLSoUDP, false, 18, 0, packet(t, addrB, other, 0, 9, "x"))},
		{"reflected", nil, wrapped(t, model.MPLSoUDP, false, 18, 0, packet(t, addrB, addrB, 0, 9, "x"))},
		{"forged_source", nil, wrapped(t, model.MPLSoUDP, false, 18, 0, packet(t, addrA, addrA, 0, 9, "x"))},
		{"forged_source", nil, wrapped(t, model.VXLAN, false, 1001, 0, frame(macA, macA, good))},
	} {
		before := must.Get(r.Drops())(t)
		if c.workload != nil {
			r.run(t, r.programs.FromWorkload, r.vif, c.workload)
		} else {
			code, _ := r.run(t, r.programs.FabricTc, r.fabric, c.fabric)
			if code != actShot {
				t.Errorf("%s: action %d", c.reason, code)
			}
			if _, meta, _ := r.xdp(t, c.fabric); meta != nil && c.reason != "no_route" && c.reason != "reflected" && c.reason != "forged_source" {
				t.Errorf("%s: XDP took it", c.reason)
			}
		}
		must.Equal(t, c.reason, r.drop(t, before))
	}
}

func fixIPv4(b []byte) {
	b[24], b[25] = 0, 0
	s := ^sum16(b[14:34])
	b[24], b[25] = byte(s>>8), byte(s)
}

func TestAPacketWithACorrectOuterChecksumIsAccepted(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, nil)
	for _, n := range []int{1, 2, 300, 481, 1300} {
		ip := packet(t, addrB, addrA, 0, 9, string(make([]byte, n)))
		b := wrapped(t, model.MPLSoUDP, false, 18, 0, ip)
		pseudo := append(append([]byte{}, b[26:34]...), 0, 17, b[38], b[39])
		body := append(pseudo, b[34:]...)
		if len(body)%2 == 1 {
			body = append(body, 0)
		}
		s := ^sum16(body)
		b[40], b[41] = byte(s>>8), byte(s)
		code, out := r.run(t, r.programs.FabricTc, r.fabric, b)
		if code != actRedirect || string(out[14:]) != string(ip) {
			t.Errorf("%d bytes: action %d, %s", n, code, r.drop(t, nil))
		}
	}
}

// On a node that accepts no VXLAN, VXLAN's port is 0 in the settings. Packets to port 0 are the host's.
func TestPacketsToPort0GoToTheHost(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) { f.Settings.VXLANPort = 0 })
	b := wrapped(t, model.VXLAN, false, 1001, 0, frame(macB, macA, packet(t, addrB, addrA, 0, 9, "x")))
	b[36], b[37] = 0, 0 // destination port
	if code, _ := r.run(t, r.programs.FabricTc, r.fabric, b); code != actUnspec {
		t.Errorf("received: action %d, %s", int32(code), r.drop(t, nil))
	}
	copy(b[26:34], slices.Concat(local.AsSlice(), far.AsSlice()))
	if code, _ := r.run(t, r.programs.FabricOut, r.fabric, b); code != actUnspec {
		t.Errorf("sent to another node: action %d, %s", int32(code), r.drop(t, nil))
	}
}

// Nothing else of the host's traffic is touched.
func TestOtherPacketsOfTheUnderlayPassUnchanged(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, nil)
	eth := func(proto layers.EthernetType) *layers.Ethernet {
		return &layers.Ethernet{SrcMAC: hw(macB), DstMAC: hw(macA), EthernetType: proto}
	}
	ip := func(dst netip.Addr, p layers.IPProtocol) *layers.IPv4 {
		return &layers.IPv4{Version: 4, TTL: 64, Protocol: p, SrcIP: far.AsSlice(), DstIP: dst.AsSlice()}
	}
	for name, b := range map[string][]byte{
		"ARP":               serialize(t, eth(layers.EthernetTypeARP), &layers.ARP{AddrType: 1, Protocol: 0x800, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1, SourceHwAddress: hw(macB), SourceProtAddress: far.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: local.AsSlice()}),
		"another port":      serialize(t, eth(layers.EthernetTypeIPv4), ip(local, layers.IPProtocolUDP), gopacket.Payload([]byte{0x19, 0xeb, 0, 53, 0, 9, 0, 0, 1})),
		"another host's":    serialize(t, eth(layers.EthernetTypeIPv4), ip(netip.MustParseAddr("172.31.0.77"), layers.IPProtocolUDP), gopacket.Payload([]byte{0, 53, 0x19, 0xeb, 0, 9, 0, 0, 1})),
		"plain GRE":         serialize(t, eth(layers.EthernetTypeIPv4), ip(local, layers.IPProtocolGRE), gopacket.Payload([]byte{0, 0, 8, 0, 0x45, 0})),
		"a later fragment":  serialize(t, eth(layers.EthernetTypeIPv4), func() *layers.IPv4 { i := ip(local, layers.IPProtocolUDP); i.FragOffset = 100; return i }(), gopacket.Payload(make([]byte, 64))),
		"TCP":               serialize(t, eth(layers.EthernetTypeIPv4), ip(local, layers.IPProtocolTCP), gopacket.Payload(make([]byte, 20))),
		"a cut IPv4 header": serialize(t, eth(layers.EthernetTypeIPv4), gopacket.Payload([]byte{0x45, 0, 0})),
		"an LLDP frame":     serialize(t, eth(0x88cc), gopacket.Payload(make([]byte, 50))),
	} {
		code, out := r.run(t, r.programs.FabricTc, r.fabric, b)
		if code != actUnspec || string(out) != string(b) {
			t.Errorf("%s by tc: action %d", name, int32(code))
		}
		if code, meta, out := r.xdp(t, b); code != xdpPass || meta != nil || string(out) != string(b) {
			t.Errorf("%s by XDP: action %d", name, code)
		}
	}
	if o, err := r.Outcomes(); err != nil || o.Received != 8 || o.Passed != 8 {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestXDPWithoutMetadataLeavesTheFrameToTC: in drivers without metadata
// bpf_xdp_adjust_meta fails. Here the call is replaced by its error.
func TestXDPWithoutMetadataLeavesTheFrameToTC(t *testing.T) {
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		r := newRig(t, encap, v6, nil)
		inner := packet(t, addrB, addrA, 0, 9, "hello")
		if encap == model.VXLAN {
			inner = frame(macB, macA, inner)
		}
		outer := wrapped(t, encap, v6, labelOf(encap, false), 0, inner)
		if _, meta, _ := r.xdp(t, outer); meta == nil {
			t.Fatal("XDP did not decapsulate the frame with metadata")
		}
		loaded := r.programs.FabricXdp
		defer func() { r.programs.FabricXdp = loaded }()
		r.programs.FabricXdp = r.xdpWithoutMetadata(t)
		code, _, out := r.xdp(t, outer)
		if code != xdpPass || string(out) != string(outer) {
			t.Errorf("action %d, want the frame unchanged:\n%x\n%x", code, out, outer)
		}
	})
}

// xdpWithoutMetadata loads fabric_xdp for a driver without metadata.
func (r *rig) xdpWithoutMetadata(t *testing.T) *ebpf.Program {
	t.Helper()
	spec := must.Get(r.readPrograms())(t)
	replaced := 0
	for i, ins := range spec.Programs["fabric_xdp"].Instructions {
		if ins.IsBuiltinCall() && ins.Constant == int64(asm.FnXdpAdjustMeta) {
			spec.Programs["fabric_xdp"].Instructions[i] = asm.Mov.Imm(asm.R0, -int32(unix.ENOTSUP)).WithMetadata(ins.Metadata)
			replaced++
		}
	}
	for name := range spec.Programs {
		if name != "fabric_xdp" {
			delete(spec.Programs, name)
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{
		"settings": r.maps.Settings, "remotes": r.maps.Remotes, "ilm": r.maps.Ilm, "vnis": r.maps.Vnis, "outcomes": r.maps.Outcomes,
	}})
	if err != nil || replaced != 1 {
		t.Fatalf("%d calls replaced: %v", replaced, err)
	}
	t.Cleanup(c.Close)
	return c.Programs["fabric_xdp"]
}

func TestATraceShowsTheStepsAndLeavesNoMark(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, nil)
	before, err := r.Outcomes()
	must.Succeed(t, err)
	steps, code, err := r.Trace(r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "x")))
	if err != nil || code != actRedirect {
		t.Fatalf("%v, action %d, %v", steps, code, err)
	}
	var kinds []TraceKind
	for _, s := range steps {
		kinds = append(kinds, s.Kind)
	}
	if fmt.Sprint(kinds) != fmt.Sprint([]TraceKind{TraceVif, TraceRouteHost, TraceNexthop, TraceEncap}) || steps[1].Address != addrB || steps[1].Value != 18 || steps[2].ID != nhTunnel {
		t.Errorf("%+v", steps)
	}
	steps, code, err = r.Trace(r.vif, frame(macA, model.RouterMAC, packet(t, addrA, netip.MustParseAddr("10.9.1.2"), 0, 64, "x")))
	if err != nil || code != actRedirect || steps[1].Found || steps[2].Kind != TraceRouteLPM || !steps[2].Found {
		t.Errorf("by a prefix: %+v, %d, %v", steps, code, err)
	}
	steps, code, err = r.Trace(r.vif, frame(macB, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "x")))
	if last := steps[len(steps)-1]; err != nil || code != actShot || last.Kind != TraceDrop || ReasonOf(last.ID).Name != "spoofed_mac" {
		t.Errorf("a drop: %+v, %d, %v", steps, code, err)
	}
	if after, err := r.Outcomes(); err != nil || after != before {
		t.Errorf("counted: %+v, before %+v", after, before)
	}
	if drops, err := r.Drops(); err != nil || len(drops) != 0 {
		t.Errorf("counted drops: %v, %v", drops, err)
	}
}

// Receivers drop UDP without a checksum over IPv6. It is computed from the headers if the inner packet
// has a checksum, else from the whole packet.
func TestEveryPacketOverIPv6HasAChecksum(t *testing.T) {
	for _, encap := range []model.Encapsulation{model.MPLSoUDP, model.VXLAN} {
		expectChecksums(t, encap, true)
	}
}

func TestUDPChecksumsCanBeTurnedOnAndOff(t *testing.T) {
	d := shared(t)
	defer func(c Checksums) { d.options.Checksums = c }(d.options.Checksums)
	d.options.Checksums = ChecksumsOn
	for _, encap := range []model.Encapsulation{model.MPLSoUDP, model.VXLAN} {
		expectChecksums(t, encap, false)
		expectChecksums(t, encap, true)
	}
	for _, c := range []struct {
		checksums Checksums
		v6        bool
	}{{ChecksumsAuto, false}, {ChecksumsOff, false}, {ChecksumsOff, true}} {
		d.options.Checksums = c.checksums
		r := newRig(t, model.VXLAN, c.v6, nil)
		_, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, macB, packet(t, addrA, addrB, 0, 64, "x")))
		if _, udp := outerUDP(out); binary.BigEndian.Uint16(udp[6:]) != 0 {
			t.Errorf("mode %d, IPv6 %v: the checksum is %x, want none", c.checksums, c.v6, udp[6:8])
		}
	}
}

// expectChecksums expects a right outer UDP checksum for packets of all kinds.
func expectChecksums(t *testing.T, encap model.Encapsulation, v6 bool) {
	t.Helper()
	r := newRig(t, encap, v6, nil)
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), 5))
	for _, n := range []int{0, 1, 11, 12, 300, 481, 1300} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		plain, plain6 := packet(t, addrA, addrB, 0, 64, string(data)), packet(t, addrA6, addrB6, 0, 64, string(data))
		none, fragment, other := slices.Clone(plain), slices.Clone(plain), slices.Clone(plain6)
		none[26], none[27] = 0, 0 // UDP without a checksum
		fragment[6] |= 0x20       // more fragments
		for _, b := range [][]byte{none, fragment} {
			b[10], b[11] = 0, 0
			binary.BigEndian.PutUint16(b[10:], ^sum16(b[:20]))
		}
		other[6] = 132
		for name, ip := range map[string][]byte{"UDP": plain, "UDP over IPv6": plain6, "UDP without a checksum": none, "a fragment": fragment, "SCTP": other,
			"padding": append(slices.Clone(plain), 1, 2, 3)} {
			for _, to := range []model.MAC{macB, model.RouterMAC} {
				code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, to, ip))
				if code != actRedirect || udpSum(out) != 0xffff {
					t.Errorf("%s, IPv6 %v, %s of %d bytes to %s: action %d, sum %x, want ffff", encap, v6, name, n, hw(to), code, udpSum(out))
				}
			}
		}
	}
}
