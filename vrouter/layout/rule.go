package layout

import "net/netip"

// With returns the rule for remote addresses in a prefix. The zero prefix is any address.
func (r Rule) With(remote netip.Prefix) Rule {
	if remote.IsValid() {
		a := remote.Masked().Addr()
		r.Family, r.Remote, r.Mask = Family(a), AddressOf(a), MaskOf(remote.Bits()+128-a.BitLen())
	}
	return r
}
