package layout

import "net/netip"

// SenderOf returns the key that lets a remote send packets from a prefix in a VRF. With the zero
// prefix the remote may send frames from any MAC address.
func SenderOf(vrf, remote uint32, p netip.Prefix) SenderKey {
	k := SenderKey{Prefixlen: 64, Remote: Network32(remote), VRF: Network16(uint16(vrf))}
	if !p.IsValid() {
		return k
	}
	a := p.Masked().Addr()
	k.Family, k.Address = Family(a), AddressOf(a)
	k.Prefixlen += uint32(p.Bits() + 128 - a.BitLen())
	return k
}
