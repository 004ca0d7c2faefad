package flowtest

import (
	"net/netip"
	"testing"

	"windtunnel/vrouter/layout"
)

// TestOneNetworkCannotFillTheFlowTable opens as many flows as each port may have, in a
// table of 60 entries.
func TestOneNetworkCannotFillTheFlowTable(t *testing.T) {
	const second, other = vifKey + 1, vifKey + 2 // a port of the same network, and one of another
	h := load(t, quotas(60))
	h.put(h.Vifs, uint32(second), layout.Vif{ID: second, VRF: 7, Flags: layout.VifPolicy})
	h.put(h.Vifs, uint32(other), layout.Vif{ID: other, VRF: 8, Flags: layout.VifPolicy})
	open := policy{generation: 1, allowOut: true}
	h.apply(open)
	h.applyAt(second, open)
	h.applyAt(other, open)
	next := uint16(2000)
	fill := func(key uint32) (flows int) {
		for ; ; flows++ {
			next++
			switch got := h.admitAt(key, fromWorkload, udp(netip.AddrPortFrom(local4.Addr(), next), remote4, 1)); got {
			case admitted:
			case overQuota:
				return flows
			default:
				t.Fatalf("flow %d of vif %d: verdict %d", flows, key, got)
			}
		}
	}
	// A port with n flows may open another while n < 60 - all flows - its network's flows.
	for _, c := range []struct {
		what string
		key  uint32
		want int
	}{
		{"the only port with flows", vifKey, 20},    // n < 60 - n - n
		{"a second port of its network", second, 7}, // n < 60 - (20 + n) - (20 + n)
		{"the first port again", vifKey, 0},
		{"a port of another network", other, 11}, // n < 60 - (27 + n) - n
		{"the second port, after the other one", second, 0},
	} {
		if got := fill(c.key); got != c.want {
			t.Errorf("%s: %d flows, want %d", c.what, got, c.want)
		}
	}
	h.expect("a known flow", admitted, fromWorkload, udp(netip.AddrPortFrom(local4.Addr(), 2001), remote4, 1))
	h.expect("a denial", denied, toWorkload, udp(remote6, local6, 1))
}
