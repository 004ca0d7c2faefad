package datapath

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// The test changes a tunnel between two pairs of addresses while packets enter it. Each
// outer packet must have both addresses of the same pair.
func TestAPacketNeverReadsHalfANexthop(t *testing.T) {
	must.Long(t)
	const duration = 4 * time.Second
	r := newRig(t, model.MPLSoUDP, false, nil)
	pairs := [2][2]netip.Addr{{local, far}, {netip.MustParseAddr("172.31.99.1"), netip.MustParseAddr("172.31.99.2")}}
	var values [2][]layout.Nexthop
	for i, p := range pairs {
		n := r.tables.Nexthops[nhTunnel]
		n.SetPaths(layout.PathOf(p[0], p[1], far, uint32(r.fabric)))
		values[i] = []layout.Nexthop{n}
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	moves := 0
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			moves++
			if err := r.Datapath.tables().nexthops.put([]uint32{nhTunnel}, values[moves%2]); err != nil {
				done <- err
				return
			}
		}
	}()
	packet := frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 9, "hello"))
	seen := map[[2]netip.Addr]int{}
	for end := time.Now().Add(duration); time.Now().Before(end); {
		code, outer := r.run(t, r.programs.FromWorkload, r.vif, packet)
		if code != actRedirect {
			t.Fatalf("from_workload returns action %d, want a redirect", code)
		}
		seen[[2]netip.Addr{netip.AddrFrom4([4]byte(outer[26:30])), netip.AddrFrom4([4]byte(outer[30:34]))}]++
	}
	close(stop)
	must.Succeed(t, <-done)
	t.Logf("the tunnel changed %d times; packets by source and destination: %v", moves, seen)
	for pair, n := range seen {
		if pair != pairs[0] && pair != pairs[1] {
			t.Errorf("%d outer packets go from %v to %v, which is no pair", n, pair[0], pair[1])
		}
	}
	if len(seen) < 2 {
		t.Errorf("packets by source and destination: %v, want packets of both pairs", seen)
	}
}

// The test sets the key of a nexthop to zero, to both of its entries, and to both entries
// of another nexthop.
func TestAnApplyRepairsTheKeysOfNexthops(t *testing.T) {
	d := shared(t)
	want := scene(7, 8, 9, model.MPLSoUDP, false)
	must.Get(d.Apply(want))(t)
	moved := want.Nexthops[nhTunnel] // a change writes its other entry
	moved.MTU--
	want.Nexthops[nhTunnel] = moved
	must.Get(d.Apply(want))(t)
	before := must.Get(d.Dump())(t)
	for _, key := range []uint32{0, 2 * nhTunnel, 2*nhTunnel + 1, 2 * nhVif, 2*nhVif + 1} {
		must.Succeed(t, d.maps.NexthopEntries.Put(nhTunnel, key))
		must.Get(d.Apply(want))(t)
		if now, err := d.Dump(); err != nil || !reflect.DeepEqual(now, before) {
			t.Errorf("after the key was %d, Apply leaves the tables %+v (%v), want %+v", key, now, err, before)
		}
		if c, err := d.Apply(want); err != nil || c != (Changes{}) {
			t.Errorf("after the key was %d, a second Apply changes %+v (%v), want no change", key, c, err)
		}
	}
}
