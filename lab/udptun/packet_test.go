package udptun

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

// packet4 is an IPv4 packet of UDP without a checksum, ready for the kernel.
func packet4(from, to netip.Addr, size int) []byte {
	p := make([]byte, size)
	p[0], p[8], p[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(p[2:], uint16(size))
	copy(p[12:], from.AsSlice())
	copy(p[16:], to.AsSlice())
	var sum uint32
	for i := 0; i < ipv4Header; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum))
	return p
}

func packet6(from, to netip.Addr, size int) []byte {
	p := make([]byte, size)
	p[0], p[6], p[7] = 0x60, 59, 64 // no next header
	binary.BigEndian.PutUint16(p[4:], uint16(size-ipv6Header))
	copy(p[8:], from.AsSlice())
	copy(p[24:], to.AsSlice())
	return p
}

var (
	here4, there4 = netip.MustParseAddr("10.5.0.1"), netip.MustParseAddr("10.5.1.1")
	here6, there6 = netip.MustParseAddr("fd05::1"), netip.MustParseAddr("fd05:0:0:1::1")
)

func TestThePacketsDestinationIsRead(t *testing.T) {
	options := packet4(here4, there4, 100)
	options[0] = 0x4f // 60 bytes of header
	for name, c := range map[string]struct {
		packet []byte
		want   netip.Addr
		ok     bool
	}{
		"IPv4":                          {packet4(here4, there4, 1472), there4, true},
		"IPv4, header alone":            {packet4(here4, there4, 20), there4, true},
		"IPv4 with options":             {options, there4, true},
		"IPv6":                          {packet6(here6, there6, 1472), there6, true},
		"IPv6, header alone":            {packet6(here6, there6, 40), there6, true},
		"nothing":                       {nil, netip.Addr{}, false},
		"ARP's first byte":              {[]byte{0, 1, 8, 0}, netip.Addr{}, false},
		"IPv4, cut in the header":       {packet4(here4, there4, 20)[:19], netip.Addr{}, false},
		"IPv4, header length too small": {append([]byte{0x44}, packet4(here4, there4, 20)[1:]...), netip.Addr{}, false},
		"IPv4, options cut":             {append([]byte{0x46}, packet4(here4, there4, 20)[1:]...), netip.Addr{}, false},
		"IPv4, cut":                     {packet4(here4, there4, 100)[:99], netip.Addr{}, false},
		"IPv4, padded":                  {append(packet4(here4, there4, 100), 0), netip.Addr{}, false},
		"IPv6, cut in the header":       {packet6(here6, there6, 40)[:39], netip.Addr{}, false},
		"IPv6, cut":                     {packet6(here6, there6, 100)[:99], netip.Addr{}, false},
		"IPv6, padded":                  {append(packet6(here6, there6, 100), 0), netip.Addr{}, false},
	} {
		got, ok := destination(c.packet)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, ok, c.want, c.ok)
		}
	}
}

func FuzzDestination(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x45})
	f.Add(packet4(here4, there4, 28))
	f.Add(packet6(here6, there6, 48))
	f.Add(packet6(here6, there6, 48)[:44])
	f.Fuzz(func(t *testing.T, packet []byte) {
		got, ok := destination(packet)
		if ok != got.IsValid() {
			t.Fatalf("destination %v with ok %v", got, ok)
		}
		if !ok {
			return
		}
		// What is accepted is as long as it says, and goes where it says.
		length, at, size := int(binary.BigEndian.Uint16(packet[2:])), 16, 4
		if got.Is6() {
			length, at, size = ipv6Header+int(binary.BigEndian.Uint16(packet[4:])), 24, 16
		}
		if length != len(packet) || packet[0]>>4 != map[int]byte{4: 4, 16: 6}[size] {
			t.Errorf("%x was accepted", packet)
		}
		if want, _ := netip.AddrFromSlice(packet[at : at+size]); got != want {
			t.Errorf("%x goes to %v, want %v", packet, got, want)
		}
	})
}
