package datapath

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// cookieOf returns the cookie of a tunnel packet.
func cookieOf(outer []byte, v6 bool) uint16 {
	if v6 {
		return binary.BigEndian.Uint16(outer[14+2:]) & cookieMask
	}
	return binary.BigEndian.Uint16(outer[14+4:]) >> 6
}

func TestACookieIsTheKeyedHashOfItsDestination(t *testing.T) {
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		r := newRig(t, encap, v6, nil)
		to := far
		if v6 {
			to = far6
		}
		want := r.nonce.cookie(layout.AddressOf(to))
		for _, outer := range [][]byte{r.sentSmall(t), r.sentLarge(t, addrA, addrB), r.sentLarge(t, addrA6, addrB6)} {
			must.Equal(t, want, cookieOf(outer, v6))
		}
	})
}

func TestCookiesOfDestinationsAndNoncesDiffer(t *testing.T) {
	const destinations = 4096
	seen, equal := map[uint16]int{}, 0
	for i := range uint32(destinations) {
		to := layout.AddressOf(netip.AddrFrom4([4]byte{172, 31, byte(i >> 8), byte(i)}))
		c := nonce{1, 2}.cookie(to)
		seen[c]++
		if c == (nonce{1, 3}).cookie(to) {
			equal++
		}
	}
	// There are 1024 cookies, so 4 destinations per cookie on average. A random function
	// leaves about 19 cookies unused, and gives none to 20 destinations.
	if len(seen) < 960 {
		t.Errorf("%d destinations have %d different cookies, want at least 960", destinations, len(seen))
	}
	for c, n := range seen {
		if n > 20 {
			t.Errorf("cookie %#x belongs to %d destinations, want at most 20", c, n)
		}
	}
	if equal > 40 { // 4 on average
		t.Errorf("%d of %d destinations have the same cookie with another nonce, want at most 40", equal, destinations)
	}
}
