package layout

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// SetSources sets the prefixes that the workload may send from. It returns an error if there are
// too many.
func (v *Vif) SetSources(all []netip.Prefix) error {
	v.Sources4, v.Sources6 = 0, 0
	for _, p := range all {
		switch m := MaskOf(p.Bits()); {
		case p.Addr().Is4() && v.Sources4 < MaxSources:
			s := &v.Source4[v.Sources4]
			s.Address, s.Mask = Network4(p.Masked().Addr()), binary.NativeEndian.Uint32(m.Bytes[:])
			v.Sources4++
		case p.Addr().Is6() && v.Sources6 < MaxSources:
			s := &v.Source6[v.Sources6]
			s.Address, s.Mask = AddressOf(p.Masked().Addr()), m
			v.Sources6++
		default:
			return fmt.Errorf("source %s: a port has at most %d source prefixes of a family", p, MaxSources)
		}
	}
	return nil
}

// Sources returns the prefixes that the workload may send from, IPv4 first.
func (v *Vif) Sources() (all []netip.Prefix) {
	for _, s := range v.Source4[:min(v.Sources4, MaxSources)] {
		all = append(all, netip.PrefixFrom(Addr4(s.Address), bits.OnesCount32(s.Mask)))
	}
	for _, s := range v.Source6[:min(v.Sources6, MaxSources)] {
		all = append(all, netip.PrefixFrom(netip.AddrFrom16(s.Address.Bytes), s.Mask.Bits()))
	}
	return all
}

// MaskOf returns a mask with n bits.
func MaskOf(n int) (m Address) {
	for i := range n {
		m.Bytes[i/8] |= 0x80 >> (i % 8)
	}
	return m
}

// Bits returns the number of bits of a mask.
func (a Address) Bits() (n int) {
	for _, b := range a.Bytes {
		n += bits.OnesCount8(b)
	}
	return n
}
