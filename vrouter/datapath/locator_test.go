package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// locatorPairs are the locators of this node and of the node far.
var locatorPairs = []struct{ own, far netip.Prefix }{
	{netip.PrefixFrom(ownLocator, 64), netip.MustParsePrefix("fd77:9:9:9:ffff::/80")},
	{netip.MustParsePrefix("fd77:9:9:9:1::/80"), netip.PrefixFrom(farLocator, 64)},
	{netip.MustParsePrefix("fd77:9:9:9:1::/80"), netip.MustParsePrefix("fd77:9:9:9:2::/80")},
	{netip.MustParsePrefix("fd77:9:9:9:8002::/80"), netip.MustParsePrefix("fd77:9:9:9:2::/80")},
}

// inLocators returns the addresses of two workloads in the locators of their nodes;
// docs/datapath.md describes them.
func inLocators(x, y netip.Prefix, network uint16, a, b netip.Addr) (netip.Addr, netip.Addr) {
	if a.Is6() {
		network |= 0x8000
	}
	var out [2][16]byte
	fields := [2]int{}
	total := []byte{}
	for i, p := range []netip.Prefix{x, y} {
		inner := []netip.Addr{a, b}[i].As16()
		out[i] = p.Addr().As16()
		copy(out[i][12:], inner[12:])
		fields[i] = 10
		if p.Bits() == 64 {
			fields[i] = 8
		}
		if a.Is4() {
			clear(inner[:12])
		}
		for _, v := range inner[:12] {
			total = append(total, v^0xff)
		}
	}
	from := 0 // index of the address with the adjustment
	switch {
	case x.Bits() == y.Bits() && y.Addr().Less(x.Addr()), x.Bits() > y.Bits():
		from = 1
	}
	for i := range out {
		if fields[i] == 8 || i != from {
			binary.BigEndian.PutUint16(out[i][10:], network)
		}
	}
	adjustment := ^sum16(slices.Concat(out[0][:12], out[1][:12], total))
	if adjustment == 0 && fields[from] == 10 {
		adjustment = 0xffff
	}
	binary.BigEndian.PutUint16(out[from][fields[from]:], adjustment)
	return netip.AddrFrom16(out[0]), netip.AddrFrom16(out[1])
}

// All packets that can be translated leave with the addresses that docs/datapath.md describes,
// and arrive unchanged, if one locator or both have 80 bits.
func TestPacketsBetweenLocatorsOf80BitsAreTranslated(t *testing.T) {
	for _, c := range locatorPairs {
		t.Run(fmt.Sprint(c.own, " ", c.far), func(t *testing.T) {
			r := newRig(t, model.MPLSoUDP, false, translateBetween(c.own, c.far))
			own4, far4 := inLocators(c.own, c.far, 1, addrA, addrB)
			own6, far6 := inLocators(c.own, c.far, 1, addrA6, addrB6)
			check := func(name string, from bool, in, want []byte) {
				t.Helper()
				program, device := r.programs.FabricTc, r.fabric
				if from {
					program, device = r.programs.FromWorkload, r.vif
				}
				code, out := r.run(t, program, device, in)
				if code != actRedirect {
					t.Fatalf("%s: action %d and drop reason %s, want a redirect", name, code, r.drop(t, nil))
				}
				got := bytes.Clone(out[14:])
				if from {
					got[1], got[2], got[3] = got[1]&0xf0, 0, 0 // the flow label
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s: the packet is\n%x, want\n%x", name, got, want)
				}
			}
			for name, l := range transports("some payload") {
				sent := serialize(t, l[1](layers.IPv4{}, ip6(own4, far4, 63))...)
				check(name+" from the workload", true, frame(macA, model.RouterMAC, serialize(t, l[0](ip4(addrA, addrB, 64), layers.IPv6{})...)), sent)
				received := serialize(t, l[1](layers.IPv4{}, ip6(far4, own4, 60))...)
				check(name+" to the workload", false, frame(macB, macA, received), serialize(t, l[0](ip4(addrB, addrA, 60), layers.IPv6{})...))
			}
			sent, received := packets6(t, ip6(own6, far6, 63)), packets6(t, ip6(far6, own6, 60))
			for name, b := range packets6(t, ip6(addrA6, addrB6, 64)) {
				check(name+" from the workload by IPv6", true, frame(macA, model.RouterMAC, b), sent[name])
			}
			for name, b := range packets6(t, ip6(addrB6, addrA6, 60)) {
				check(name+" to the workload by IPv6", false, frame(macB, macA, received[name]), b)
			}
		})
	}
}

// An adjustment of 0 would be the number of the node's own network. The programs write 0xffff,
// which is the same number in one's complement.
func TestAnAdjustmentInPlaceOfTheNetworkIsNever0(t *testing.T) {
	own, far := locatorPairs[2].own, netip.Prefix{}
	for end := uint16(2); end != 0; end++ { // the sum has all values
		b := own.Addr().As16()
		binary.BigEndian.PutUint16(b[8:], end)
		p := netip.PrefixFrom(netip.AddrFrom16(b), 80)
		from, _ := inLocators(own, p, 1, addrA, addrB)
		if field := from.As16(); binary.BigEndian.Uint16(field[10:]) == 0xffff {
			far = p
		}
	}
	if !far.IsValid() {
		t.Fatal("no pair of locators has the adjustment 0")
	}
	r := newRig(t, model.MPLSoUDP, false, translateBetween(own, far))
	from, to := inLocators(own, far, 1, addrA, addrB)
	code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "hello")))
	if code != actRedirect || netip.AddrFrom16([16]byte(out[22:38])) != from || netip.AddrFrom16([16]byte(out[38:54])) != to {
		t.Fatalf("action %d, packet %x; want a packet from %s to %s", code, out, from, to)
	}
	if code, _ = r.run(t, r.programs.FabricTc, r.fabric, frame(macB, macA, packet(t, to, from, 0, 64, "hello"))); code != actRedirect {
		t.Errorf("the answer to %s has action %d and drop reason %s, want a redirect", from, code, r.drop(t, nil))
	}
}

// The guard, the tests of locators and the learned MTU work with locators of 80 bits. A
// neighbour in the same /64 is another node.
func TestLocatorsOf80BitsOfOne64AreDifferentNodes(t *testing.T) {
	own, far := locatorPairs[2].own, locatorPairs[2].far
	r := newRig(t, model.MPLSoUDP, false, translateBetween(own, far))
	from, to := inLocators(own, far, 1, addrA, addrB)
	stranger := netip.MustParsePrefix("fd77:9:9:9:3::/80")
	_, toStranger := inLocators(own, stranger, 1, addrA, addrB)
	fromStranger, toOwn := inLocators(stranger, own, 1, addrB, addrA)
	for _, c := range []struct {
		what   string
		in     []byte
		out    bool // of the node
		want   uint32
		reason string
	}{
		{"a forged packet to a node", packet(t, from, to, 0, 64, "hello"), true, actShot, "forged_tunnel"},
		{"a packet to an unknown /80", packet(t, from, toStranger, 0, 64, "hello"), true, actUnspec, "none"},
		{"a packet to the node's own address", packet(t, own.Addr().Next(), far.Addr().Next(), 0, 64, "hello"), true, actUnspec, "none"},
		{"a packet to another /80", packet(t, to, toStranger, 0, 64, "hello"), false, actUnspec, "none"},
		{"a packet of an unknown /80", packet(t, fromStranger, toOwn, 0, 64, "hello"), false, actShot, "unknown_source"},
	} {
		before, _ := r.Drops()
		program := r.programs.FabricTc
		if c.out {
			program = r.programs.FabricOut
		}
		code, _ := r.run(t, program, r.fabric, frame(macB, macA, c.in))
		if reason := r.drop(t, before); code != c.want || reason != c.reason {
			t.Errorf("%s: action %d and drop reason %s, want %d and %s", c.what, int32(code), reason, int32(c.want), c.reason)
		}
	}
	wrong := to.As16()
	wrong[10] ^= 1 // another network
	before, _ := r.Drops()
	r.run(t, r.programs.FabricTc, r.fabric, frame(macB, macA, packet(t, netip.AddrFrom16(wrong), from, 0, 64, "hello")))
	if reason := r.drop(t, before); reason == "none" {
		t.Error("a packet with another network than its adjustment is delivered")
	}
	long := func(size int) string {
		before, _ := r.Drops()
		_, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 64, string(make([]byte, size-28)))))
		reason := r.drop(t, before)
		if size == 1400 {
			b := tooBig(t, true, 1300, out)
			a := from.As16()
			copy(b[14+24:], a[:])
			r.run(t, r.programs.FabricTc, r.fabric, b)
		}
		return reason
	}
	if a, b, c := long(1400), long(1281), long(1280); a != "none" || b != "too_big" || c != "none" {
		t.Errorf("packets of 1400, 1281 and 1280 bytes are dropped as %s, %s, %s; want none, too_big after the router's error, none", a, b, c)
	}
}

// The last 16 bits of a locator of 80 bits may be 0. Its node is not taken for the nodes with
// other locators in the same /64.
func TestALocatorOf80BitsMayEndWithZeros(t *testing.T) {
	own, far, zero := netip.MustParsePrefix("fd77:9:9:9:1::/80"), netip.MustParsePrefix("fd77:9:9:9:2::/80"), netip.MustParsePrefix("fd77:9:9:9::/80")
	r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
		translateBetween(own, far)(f)
		f.Remotes[layout.AddressOf(zero.Addr())] = layout.Remote{ID: 99, Encaps: layout.Bits(model.Translated), Locators: fib.LocatorsOf(own, zero)}
	})
	to, from := inLocators(own, far, 1, addrA, addrB)
	code, _ := r.run(t, r.programs.FabricTc, r.fabric, frame(macB, macA, packet(t, from, to, 0, 64, "hello")))
	if code != actRedirect {
		t.Errorf("a packet from %s has action %d and drop reason %s, want a redirect", from, int32(code), r.drop(t, nil))
	}
	before, _ := r.Drops()
	stranger := netip.MustParsePrefix("fd77:9:9:9:3::/80")
	_, toStranger := inLocators(own, stranger, 1, addrA, addrB)
	code, _ = r.run(t, r.programs.FabricOut, r.fabric, frame(macB, macA, packet(t, to, toStranger, 0, 64, "hello")))
	if reason := r.drop(t, before); code != actUnspec || reason != "none" {
		t.Errorf("a packet of the host to %s, which is in no locator, has action %d and drop reason %s", toStranger, int32(code), reason)
	}
}

// The time of a translated packet through the programs, by the lengths of the locators.
func BenchmarkTranslatedPacket(b *testing.B) {
	for _, c := range slices.Concat(locatorPairs[:3], []struct{ own, far netip.Prefix }{{netip.PrefixFrom(ownLocator, 64), netip.PrefixFrom(farLocator, 64)}}) {
		b.Run(fmt.Sprint(c.own.Bits(), " ", c.far.Bits()), func(b *testing.B) {
			devices := enterSpace(b, 3)
			r := &rig{Datapath: open(b, Options{Pins: pins(b), Limits: small}), vif: devices[0], vif2: devices[1], fabric: devices[2]}
			f := scene(r.vif, r.vif2, r.fabric, model.MPLSoUDP, false)
			translateBetween(c.own, c.far)(&f)
			if _, err := r.Apply(f); err != nil {
				b.Fatal(err)
			}
			leaving := frame(macA, model.RouterMAC, packet(b, addrA, addrB, 0, 64, "x"))
			own, far := inLocators(c.own, c.far, 1, addrA, addrB)
			arriving := frame(macB, macA, packet(b, far, own, 0, 64, "x"))
			for b.Loop() {
				out := nanoseconds(b, r.programs.FromWorkload, func() { r.run(b, r.programs.FromWorkload, r.vif, leaving) })
				in := nanoseconds(b, r.programs.FabricTc, func() { r.run(b, r.programs.FabricTc, r.fabric, arriving) })
				b.ReportMetric(out, "ns/from_workload")
				b.ReportMetric(in, "ns/fabric_tc")
			}
		})
	}
}

// The trace has both translated addresses of a packet, or the fallback of a packet that cannot
// be translated.
func TestTheTraceShowsTranslatedAddresses(t *testing.T) {
	c := locatorPairs[2]
	r := newRig(t, model.MPLSoUDP, false, translateBetween(c.own, c.far))
	trace := func(ttl uint8) (addresses []netip.Addr, fallback []TraceStep) {
		t.Helper()
		steps, _ := r.trace(t, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, ttl, "hello")))
		for _, s := range steps {
			switch s.Kind {
			case TraceTranslated:
				addresses = append(addresses, s.Address)
			case TraceFallback:
				fallback = append(fallback, s)
			}
		}
		return addresses, fallback
	}
	from, to := inLocators(c.own, c.far, 1, addrA, addrB)
	if addresses, fallback := trace(64); !slices.Equal(addresses, []netip.Addr{from, to}) || len(fallback) > 0 {
		t.Errorf("the trace shows the addresses %s and the fallback %v, want %s and %s", addresses, fallback, from, to)
	}
	if addresses, fallback := trace(31); len(addresses) > 0 || len(fallback) != 1 || !fallback[0].Found || fallback[0].ID != nhTunnel {
		t.Errorf("with a low TTL, the trace shows the addresses %s and the fallback %+v, want nexthop %d", addresses, fallback, nhTunnel)
	}
}
