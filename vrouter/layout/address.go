// Package layout has the types of the keys and values of the eBPF programs' maps, as
// vrouter/datapath/bpf/types.h describes them. Integers are in host order, except where types.h
// says "network order".
package layout

import (
	"encoding/binary"
	"net/netip"
)

// AddressOf returns an address as 16 bytes: an IPv4 address is mapped to IPv6 (RFC 4291, section
// 2.5.5.2). The result is zero if a is not valid.
func AddressOf(a netip.Addr) (v Address) {
	if a.IsValid() {
		v.Bytes = a.As16()
	}
	return v
}

// Addr returns the address. It is not valid if all 16 bytes are zero.
func (a Address) Addr() netip.Addr {
	if a == (Address{}) {
		return netip.Addr{}
	}
	return netip.AddrFrom16(a.Bytes).Unmap()
}

// family returns the value of enum protocol_family.
func family(a netip.Addr) uint8 {
	if a.Is4() {
		return 4
	}
	return 6
}

// Network4 returns an IPv4 address as an integer in network order; 0: a is not an IPv4 address.
func Network4(a netip.Addr) uint32 {
	if !a.Is4() {
		return 0
	}
	b := a.As4()
	return binary.NativeEndian.Uint32(b[:])
}

// Addr4 returns the IPv4 address of an integer in network order.
func Addr4(v uint32) netip.Addr {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], v)
	return netip.AddrFrom4(b)
}

// Words96 returns the first 96 bits of an IPv6 address, in network order.
func Words96(a netip.Addr) (w [3]uint32) {
	b := a.As16()
	for i := range w {
		w[i] = binary.NativeEndian.Uint32(b[4*i:])
	}
	return w
}

// Network32 converts an integer between host order and network order.
func Network32(v uint32) uint32 {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return binary.NativeEndian.Uint32(b[:])
}

// Network16 converts an integer between host order and network order.
func Network16(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

// With returns the rule for remote addresses in a prefix. The zero prefix is any address.
func (r Rule) With(remote netip.Prefix) Rule {
	if remote.IsValid() {
		a := remote.Masked().Addr()
		r.Family, r.Remote, r.Mask = family(a), AddressOf(a), MaskOf(remote.Bits()+128-a.BitLen())
	}
	return r
}

// SenderOf returns the key that lets a remote send packets from a prefix in a VRF. With the zero
// prefix the remote may send frames from any MAC address.
func SenderOf(vrf, remote uint32, p netip.Prefix) SenderKey {
	k := SenderKey{Prefixlen: 64, Remote: Network32(remote), VRF: Network16(uint16(vrf))}
	if !p.IsValid() {
		return k
	}
	a := p.Masked().Addr()
	k.Family, k.Address = family(a), AddressOf(a)
	k.Prefixlen += uint32(p.Bits() + 128 - a.BitLen())
	return k
}
