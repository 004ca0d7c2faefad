package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// Ports with several addresses, the same address twice, and an invalid address are added and removed many times.
func TestTheIndexFindsTheSamePortsAsAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x index
	want := map[indexKey]*storedPort{}
	for range 20_000 {
		n := byte(r.IntN(200))
		a := netip.AddrFrom4([4]byte{10, 0, 0, n})
		six := netip.AddrFrom16(a.As16())
		p := &storedPort{}
		p.Name, p.Place, p.PortDetails = fmt.Sprint(n), &model.Place{Network: fmt.Sprint("n", n%3)}, &model.PortDetails{}
		if p.MAC = (model.MAC{5: n}); n > 0 {
			p.IPs = []netip.Addr{a, six, a, {}}[:r.IntN(4)]
		}
		if n == 1 {
			p.IPs = []netip.Addr{{}}
		}
		for k := range p.keys() {
			if was := want[k]; was != nil {
				x.remove(was)
				maps.DeleteFunc(want, func(_ indexKey, p *storedPort) bool { return p == was })
			}
		}
		if r.IntN(3) > 0 {
			x.add(p)
			for k := range p.keys() {
				want[k] = p
			}
		}
		for _, k := range []indexKey{macOf(p.Network, p.MAC), addressOf(p.Network, a), addressOf(p.Network, six), addressOf(p.Network, netip.Addr{}), addressOf("n3", a)} {
			if is := x.get(k); is != want[k] {
				t.Fatalf("the index has port %q for %+v, want %q", is.name(), k, want[k].name())
			}
		}
		must.Equal(t, len(want), x.keys)
	}
	if len(x.slots) > 2000 {
		t.Errorf("an index of %d keys has %d slots", x.keys, len(x.slots))
	}
}
