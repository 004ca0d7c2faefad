package service

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// The prefix of Range contains all addresses, and no longer prefix does.
func TestTheRangeIsTheSmallestPrefixWithAllAddresses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var all []netip.Addr
		base, bits := [16]byte{0xfd, 0x96, 14: byte(r.Uint32()), 15: byte(r.Uint32())}, r.IntN(20)
		for range 1 + r.IntN(5) {
			a := base
			for range bits {
				n := r.IntN(bits)
				a[15-n/8] ^= byte(r.IntN(2)) << (n % 8)
			}
			if r.IntN(2) == 0 || len(all) > 0 && all[0].Is6() {
				all = append(all, netip.AddrFrom16(a))
			} else {
				all = append(all, netip.AddrFrom4([4]byte(a[12:])))
			}
		}
		for i := range all {
			if all[i].Is4() != all[0].Is4() {
				all[i] = all[0]
			}
		}
		p := Range(all)
		longer, outside := netip.PrefixFrom(all[0], min(p.Bits()+1, p.Addr().BitLen())), false
		for _, a := range all {
			if !p.Contains(a) {
				t.Fatalf("Range(%v) = %v", all, p)
			}
			outside = outside || !longer.Contains(a)
		}
		if !outside && p.Bits() < p.Addr().BitLen() {
			t.Fatalf("Range(%v) = %v, and %v has all of them", all, p, longer.Masked())
		}
	}
	if p := Range(nil); p.IsValid() {
		t.Fatalf("Range(nil) = %v", p)
	}
}
