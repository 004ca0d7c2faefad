package datapath

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// nhBridged is the nexthop of bridged frames that go to the node far without a tunnel.
const nhBridged uint32 = 101

// addr50 is not the address of workload A, but A may send from it (allow_sources).
var addr50 = netip.MustParseAddr("10.50.1.1")

// bridgesDirectly changes the tables. Frames to the MAC address of B then go directly to the
// node far if that node can restore them. Other frames take the tunnel for Ethernet payload.
func bridgesDirectly(f *fib.Tables) {
	t := f.Nexthops[nhTunnelEthernet]
	t.Encap, t.Flags, t.Port, t.Fallback = layout.Number(model.Direct), 0, 0, nhTunnelEthernet
	f.Nexthops[nhBridged] = t
	key := layout.BridgeKey{VRF: 1, MAC: macB}
	f.Bridge[key] = layout.BridgeEntry{Nexthop: nhBridged, Label: f.Bridge[key].Label}
	addStations(f)
	for i, v := range f.Vifs {
		if v.ID == 1 {
			v.SetSources([]netip.Prefix{netip.PrefixFrom(addrA, 32), netip.PrefixFrom(addr50, 16).Masked(), netip.PrefixFrom(addrA6, 128)})
			f.Vifs[i] = v
		}
	}
}

// addStations adds the MAC addresses of workloads to their host routes.
func addStations(f *fib.Tables) {
	for a, mac := range map[netip.Addr]model.MAC{addrA: macA, addrA6: macA, addrB: macB, addrB6: macB, addrC: macC, addrD: macD} {
		for k, r := range f.Routes {
			if k.Prefix.Addr() == a && k.Prefix.IsSingleIP() {
				r.MAC, r.Flags = mac, layout.RouteMAC
				f.Routes[k] = r
			}
		}
	}
}

// bridgedLabel returns the source address of a bridged frame without a tunnel.
func bridgedLabel(network uint32, node netip.Addr) model.MAC {
	l := direct.Label(network, node)
	l[0] ^= 4
	return l
}

// ethernet returns a frame of any type.
func ethernet(to, from model.MAC, kind uint16, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint16(append(slices.Clone(to[:]), from[:]...), kind), payload...)
}

// A bridged frame to a workload on a common link has labels instead of its MAC addresses. It
// is otherwise unchanged, also its TTL.
func TestABridgedFrameLeavesWithLabels(t *testing.T) {
	r := newRig(t, model.VXLAN, false, bridgesDirectly)
	for _, ip := range [][]byte{packet(t, addrA, addrB, 0xb9, 1, "hello"), packet(t, addrA6, addrB6, 0xb9, 255, "hello")} {
		code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, macB, ip))
		if code != actRedirect {
			t.Fatalf("action %d and drop reason %s, want a redirect", code, r.drop(t, nil))
		}
		if want := frame(bridgedLabel(1, local), direct.Label(1, far), ip); !bytes.Equal(out, want) {
			t.Errorf("the frame is\n%x, want only labels as MAC addresses\n%x", out, want)
		}
	}
	stats := must.Get(r.VRFStats())(t)
	if n := stats[1].TxPackets[layout.Number(model.Direct)]; n != 2 {
		t.Errorf("the counter of encapsulation direct has %d packets, want 2", n)
	}
	if _, mark := r.runMarked(t, r.programs.FromWorkload, r.vif, frame(macA, macB, packet(t, addrA, addrB, 0, 64, "hello")), 0); mark != r.nonce[0] {
		t.Errorf("the frame leaves with mark %#x, want %#x", mark, r.nonce[0])
	}
}

// In a network that only bridges, the source of a bridged frame is the label to which other
// nodes send. So switches learn this label from the frame.
func TestABridgedFrameTeachesSwitchesTheLabelOfItsNetwork(t *testing.T) {
	r := newRig(t, model.VXLAN, false, func(f *fib.Tables) {
		bridgesDirectly(f)
		onlyBridges(f)
	})
	for _, ip := range [][]byte{packet(t, addrA, addrB, 0xb9, 1, "hello"), packet(t, addrA6, addrB6, 0xb9, 255, "hello")} {
		code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, macB, ip))
		if want := frame(direct.Label(1, local), direct.Label(1, far), ip); code != actRedirect || !bytes.Equal(out, want) {
			t.Errorf("action %d, drop reason %s, and the frame is\n%x, want a redirect of\n%x", code, r.drop(t, nil), out, want)
		}
	}
}

// onlyBridges changes the tables: network 1 does not route.
func onlyBridges(f *fib.Tables) {
	vrf := f.VRFs[1]
	vrf.Flags = layout.VifL2
	f.VRFs[1] = vrf
	for i, v := range f.Vifs {
		if v.VRF == 1 {
			v.Flags &^= layout.VifL3
		}
		f.Vifs[i] = v
	}
}

// Frames that the receiver cannot restore take the tunnel, and are unchanged in it.
func TestFramesThatCannotBeRestoredTakeTheTunnel(t *testing.T) {
	r := newRig(t, model.VXLAN, false, bridgesDirectly)
	for name, c := range map[string]struct {
		b      []byte
		reason string
	}{
		"the destination is another workload's address": {frame(macA, macB, packet(t, addrA, addrC, 0, 64, "hello")), "destination"},
		"the destination has no host route":             {frame(macA, macB, packet(t, addrA, netip.MustParseAddr("10.9.1.2"), 0, 64, "hello")), "destination"},
		"the destination has no route":                  {frame(macA, macB, packet(t, addrA, netip.MustParseAddr("10.1.0.99"), 0, 64, "hello")), "destination"},
		"the destination is the gateway":                {frame(macA, macB, packet(t, addrA, netip.MustParseAddr("10.1.0.1"), 0, 64, "hello")), "destination"},
		"the destination is a multicast address":        {frame(macA, macB, packet(t, addrA, netip.MustParseAddr("224.0.0.251"), 0, 64, "hello")), "destination"},
		"the source is in a prefix":                     {frame(macA, macB, packet(t, addr50, addrB, 0, 64, "hello")), "source"},
		"the frame is not IP":                           {ethernet(macB, macA, 0x88b6, make([]byte, 60)), "not_ip"},
	} {
		before := r.fallbacks(t)
		code, out := r.run(t, r.programs.FromWorkload, r.vif, c.b)
		r.counted(t, name, before, c.reason)
		if c.b[12] == 0x88 {
			if code != actShot || r.drop(t, nil) != "none" { // a clone of the frame leaves (send_raw)
				t.Errorf("%s: action %d and drop reason %q, want a clone in the tunnel", name, code, r.drop(t, nil))
			}
			continue
		}
		if code != actRedirect {
			t.Errorf("%s: action %d and drop reason %s, want a redirect", name, code, r.drop(t, nil))
			continue
		}
		if label, inner, _ := outerOf(t, model.VXLAN, false, out); label != 1001 || !bytes.Equal(inner, c.b) {
			t.Errorf("%s: VNI %d with the frame\n%x, want 1001 with\n%x", name, label, inner, c.b)
		}
	}
}

// Random frames of workload A are compared with a model: the frames that B's node can restore
// have labels, all others are in the tunnel.
func TestRandomFramesAreRestorableOrInTheTunnel(t *testing.T) {
	r := newRig(t, model.VXLAN, false, bridgesDirectly)
	seed := uint64(os.Getpid())
	h := hostile{Rand: rand.New(rand.NewPCG(seed, 8))}
	labels, tunnels := 0, 0
	for i := range fuzzPackets(t) {
		from, to := of(h, addrA, addrA, addrA, addr50), of(h, addrB, addrB, addrB, addrC, addrA, netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("255.255.255.255"))
		v6 := h.oneIn(3)
		if v6 {
			from, to = addrA6, of(h, addrB6, addrB6, addrA6, netip.MustParseAddr("fd00:9::1"), netip.MustParseAddr("ff02::1"))
		}
		payload := make([]byte, 20+h.IntN(1300))
		for i := range payload {
			payload[i] = byte(h.Uint32())
		}
		// No TCP, whose MSS is lowered, and no ICMPv6, whose neighbour discovery is checked.
		ip := h.ip(v6, byte(h.Uint32()), byte(h.Uint32()), of[byte](h, 17, 17, 132, 253, 44, 0), from, to, payload)
		if !v6 && h.oneIn(3) {
			ip[0], payload = 0x40|byte(5+h.IntN(5)), ip[20:]
		}
		if !v6 {
			binary.BigEndian.PutUint16(ip[6:], uint16(h.Uint32()))
		}
		if v6 && (ip[6] == 0 || ip[6] == 44) {
			ip[7] = 64              // with 255 a header in front of neighbour discovery is refused
			ip[40], ip[41] = 253, 0 // a chain with an end, and without a DHCP server's port
		}
		kind := map[bool]uint16{false: 0x0800, true: 0x86dd}[v6]
		if slices.Contains([]uint16{67, 547}, binary.BigEndian.Uint16(payload)) {
			continue // a DHCP server's port
		}
		b := ethernet(macB, macA, kind, append(ip, make([]byte, h.IntN(6))...))
		code, out := r.run(t, r.programs.FromWorkload, r.vif, b)
		if code == notRun {
			continue
		}
		if code != actRedirect {
			t.Fatalf("seed %d, frame %d: action %d and drop reason %s: %x", seed, i, code, r.drop(t, nil), b)
		}
		if from != addr50 && (to == addrB || to == addrB6) {
			labels++
			if want := ethernet(direct.Label(1, far), bridgedLabel(1, local), kind, b[14:]); !bytes.Equal(out, want) {
				t.Fatalf("seed %d, frame %d leaves as\n%x, want\n%x", seed, i, out, want)
			}
			continue
		}
		tunnels++
		if label, inner, _ := outerOf(t, model.VXLAN, false, out); label != 1001 || !bytes.Equal(inner, b) {
			t.Fatalf("seed %d, frame %d: VNI %d with\n%x, want 1001 with\n%x", seed, i, label, inner, b)
		}
	}
	t.Logf("%d frames with labels, %d in the tunnel", labels, tunnels)
	if labels == 0 || tunnels == 0 {
		t.Error("the frames prove too little")
	}
}

// The receiver restores the MAC addresses of a bridged frame, also in a network that only
// bridges. It refuses frames whose addresses do not belong to their ends.
func TestABridgedFrameWithLabelsIsRestored(t *testing.T) {
	unknown := netip.MustParseAddr("172.31.0.99")
	for _, routes := range []bool{true, false} {
		r := newRig(t, model.VXLAN, false, func(f *fib.Tables) {
			bridgesDirectly(f)
			if !routes {
				onlyBridges(f)
			}
		})
		type arrival struct {
			name      string
			network   uint32
			from      model.MAC
			kind      uint16
			ip        []byte
			delivered bool
			reason    string
		}
		cases := []arrival{
			{"IPv4", 1, bridgedLabel(1, far), 0x0800, packet(t, addrB, addrA, 0, 1, "hello"), true, ""},
			{"IPv6", 1, bridgedLabel(1, far), 0x86dd, packet(t, addrB6, addrA6, 0, 255, "hello"), true, ""},
			{"an unknown node", 1, bridgedLabel(1, unknown), 0x0800, packet(t, addrB, addrA, 0, 64, "hello"), false, "unknown_source"},
			{"the label of another network", 1, bridgedLabel(2, far), 0x0800, packet(t, addrB, addrA, 0, 64, "hello"), false, "unknown_source"},
			{"a source that is not a label", 1, model.MAC{0x0a, 1, 172, 31, 0, 2}, 0x0800, packet(t, addrB, addrA, 0, 64, "hello"), false, "unknown_source"},
			{"an unknown network", 9, bridgedLabel(9, far), 0x0800, packet(t, addrB, addrA, 0, 64, "hello"), false, "unknown_label"},
			{"a workload of this node", 1, bridgedLabel(1, far), 0x0800, packet(t, addrC, addrA, 0, 64, "hello"), false, "forged_source"},
			{"a source with a prefix route", 1, bridgedLabel(1, far), 0x0800, packet(t, netip.MustParseAddr("10.9.1.2"), addrA, 0, 64, "hello"), false, "forged_source"},
			{"a source without a route", 1, bridgedLabel(1, far), 0x0800, packet(t, netip.MustParseAddr("10.1.0.99"), addrA, 0, 64, "hello"), false, "forged_source"},
			{"the gateway as destination", 1, bridgedLabel(1, far), 0x0800, packet(t, addrB, netip.MustParseAddr("10.1.0.1"), 0, 64, "hello"), false, "no_route"},
			{"a destination on the other node", 1, bridgedLabel(1, far), 0x0800, packet(t, addrB, addrB, 0, 64, "hello"), false, "reflected"},
			{"another type than its IP version", 1, bridgedLabel(1, far), 0x86dd, packet(t, addrB, addrA, 0, 64, "twenty more bytes, or the kernel refuses to run it"), false, "bad_inner"},
			{"ARP", 1, bridgedLabel(1, far), 0x0806, packet(t, addrB, addrA, 0, 64, "hello"), false, "bad_inner"},
		}
		for _, c := range cases {
			// In a network that only bridges, the source can also be the label of a routed packet.
			if c.from = direct.Label(c.network, far); !routes && c.reason != "unknown_source" {
				c.name += ", with one label"
				cases = append(cases, c)
			}
		}
		for _, c := range cases {
			before, _ := r.Drops()
			code, out := r.run(t, r.programs.FabricTc, r.fabric, ethernet(direct.Label(c.network, local), c.from, c.kind, c.ip))
			if !c.delivered {
				if reason := r.drop(t, before); code != actShot || reason != c.reason {
					t.Errorf("%s, routes %v: action %d and drop reason %s, want %s", c.name, routes, code, reason, c.reason)
				}
				continue
			}
			if want := ethernet(macA, macB, c.kind, c.ip); code != actRedirect || !bytes.Equal(out, want) {
				t.Errorf("%s, routes %v: action %d, drop reason %s and frame\n%x, want a redirect of\n%x", c.name, routes, code, r.drop(t, before), out, want)
			}
		}
	}
}

// A network that only routes has no bridged frames.
func TestANetworkThatOnlyRoutesTakesNoBridgedFrames(t *testing.T) {
	r := newRig(t, model.VXLAN, false, func(f *fib.Tables) {
		bridgesDirectly(f)
		vrf := f.VRFs[1]
		vrf.Flags = layout.VifL3
		f.VRFs[1] = vrf
	})
	code, _ := r.run(t, r.programs.FabricTc, r.fabric, frame(bridgedLabel(1, far), direct.Label(1, local), packet(t, addrB, addrA, 0, 64, "hello")))
	if reason := r.drop(t, nil); code != actShot || reason != "unknown_label" {
		t.Errorf("action %d and drop reason %s, want unknown_label", code, reason)
	}
}

// A trace of a bridged frame shows the nexthop without a tunnel, or this nexthop and its fallback.
func TestATraceShowsHowABridgedFrameLeaves(t *testing.T) {
	r := newRig(t, model.VXLAN, false, bridgesDirectly)
	for _, c := range []struct {
		to       netip.Addr
		nexthops []uint32
		encap    model.Encapsulation
		label    uint32
	}{
		{addrB, []uint32{nhBridged}, model.Direct, 1},
		{addrC, []uint32{nhBridged, nhTunnelEthernet}, model.VXLAN, 1001},
	} {
		steps, code := r.trace(t, r.vif, frame(macA, macB, packet(t, addrA, c.to, 0, 64, "x")))
		if code != actRedirect {
			t.Fatalf("the trace has the steps %+v and ends with action %d", steps, code)
		}
		var nexthops []uint32
		for _, s := range steps {
			if s.Kind == TraceNexthop {
				nexthops = append(nexthops, s.ID)
			}
		}
		last := steps[len(steps)-1]
		if !slices.Equal(nexthops, c.nexthops) || last.Kind != TraceEncap || layout.Encapsulations[last.ID] != c.encap || last.Value != c.label {
			t.Errorf("the trace to %s has nexthops %v and ends with %+v; want nexthops %v, %s and %d", c.to, nexthops, last, c.nexthops, c.encap, c.label)
		}
	}
}

// A host takes IP, ARP or a VLAN tag behind an LLC/SNAP header, or with a wrong length, as it takes
// them behind an EtherType (CVE-2021-27854, 27861, 27862). No check reads them there.
func TestOf8023FramesOnlySpanningTreeAndISISAreBridged(t *testing.T) {
	snap := func(oui byte, kind uint16, payload []byte) []byte {
		return append(binary.BigEndian.AppendUint16([]byte{0xaa, 0xaa, 3, 0, 0, oui}, kind), payload...)
	}
	inner := packet(t, addrB, addrA, 0, 9, "forged")
	advertisement := packet(t, addrB6, addrA6, 0, 255, "forged")
	everyone := model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for _, l3 := range []bool{false, true} {
		r := newRig(t, model.VXLAN, false, func(f *fib.Tables) {
			for i, v := range f.Vifs {
				v.Flags = v.Flags&^layout.VifL3 | layout.If[uint16](l3, layout.VifL3)
				f.Vifs[i] = v
			}
		})
		for name, c := range map[string]struct {
			length  int // 0: of the payload
			payload []byte
			passes  bool
		}{
			"SNAP with IPv4":              {0, snap(0, 0x0800, inner), false},
			"SNAP with IPv6":              {0, snap(0, 0x86dd, advertisement), false},
			"SNAP with ARP":               {0, snap(0, 0x0806, make([]byte, 28)), false},
			"SNAP with a VLAN":            {0, snap(0, 0x8100, append([]byte{0, 1, 8, 0}, inner...)), false},
			"SNAP of a bridge tunnel":     {0, snap(0xf8, 0x0806, make([]byte, 28)), false},
			"LLC with IPv4":               {0, append([]byte{6, 6, 3}, inner...), false},
			"Novell's raw 802.3":          {0, append([]byte{0xff, 0xff}, inner...), false},
			"SNAP, length 1501":           {1501, snap(0, 0x0806, make([]byte, 28)), false},
			"SNAP, length 1535":           {1535, snap(0, 0x86dd, advertisement), false},
			"SNAP, length 3":              {3, snap(0, 0x86dd, advertisement), false},
			"spanning tree, length 1535":  {1535, append([]byte{0x42, 0x42, 3}, make([]byte, 43)...), false},
			"spanning tree":               {38, append([]byte{0x42, 0x42, 3}, make([]byte, 43)...), true},
			"IS-IS":                       {0, append([]byte{0xfe, 0xfe, 3}, make([]byte, 60)...), true},
			"an EtherType":                {0x88cc, make([]byte, 60), true},
			"the least EtherType, 0x0600": {0x600, make([]byte, 60), true},
		} {
			if c.length == 0 {
				c.length = len(c.payload)
			}
			for _, to := range []model.MAC{macB, everyone} {
				before := must.Get(r.Drops())(t)
				r.run(t, r.programs.FromWorkload, r.vif, ethernet(to, macA, uint16(c.length), c.payload))
				if reason := r.drop(t, before); (reason == "none") != c.passes {
					t.Errorf("l3=%v, %s to %s: dropped as %s", l3, name, to, reason)
				}
			}
		}
	}
}
