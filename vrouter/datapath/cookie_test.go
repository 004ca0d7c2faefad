package datapath

import (
	"encoding/binary"
	"net/netip"
	"testing"

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
		want := r.nonce.cookie(addressOf(to))
		for _, outer := range [][]byte{r.sentSmall(t), r.sentLarge(t, addrA, addrB), r.sentLarge(t, addrA6, addrB6)} {
			if got := cookieOf(outer, v6); got != want {
				t.Errorf("cookie %#x, want %#x", got, want)
			}
		}
	})
}

func TestCookiesOfDestinationsAndNoncesDiffer(t *testing.T) {
	const destinations = 4096
	seen, equal := map[uint16]int{}, 0
	for i := range uint32(destinations) {
		to := addressOf(netip.AddrFrom4([4]byte{172, 31, byte(i >> 8), byte(i)}))
		c := nonce{1, 2}.cookie(to)
		seen[c]++
		if c == (nonce{1, 3}).cookie(to) {
			equal++
		}
	}
	// 1024 values, 4 times each on average: about 19 stay unused, and none comes 20 times.
	if len(seen) < 960 {
		t.Errorf("%d cookies of %d destinations, want nearly 1024", len(seen), destinations)
	}
	for c, n := range seen {
		if n > 20 {
			t.Errorf("cookie %#x of %d destinations", c, n)
		}
	}
	if equal > 40 { // 4 on average
		t.Errorf("%d of %d cookies are the same with another nonce", equal, destinations)
	}
}
