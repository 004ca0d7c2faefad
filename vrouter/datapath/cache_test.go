package datapath

import (
	"net/netip"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// onOneCPU keeps the test on one CPU, because each CPU has its own caches.
func onOneCPU(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	var before, one unix.CPUSet
	must.Succeed(t, unix.SchedGetaffinity(0, &before))
	for cpu := range 1024 {
		if before.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	must.Succeed(t, unix.SchedSetaffinity(0, &one))
	t.Cleanup(func() {
		unix.SchedSetaffinity(0, &before)
		runtime.UnlockOSThread()
	})
}

// The programs cache vifs and host routes. After each Apply, the next packet uses the new
// tables. An Apply that writes nothing also ends the use of the cached entries.
func TestCachedEntriesAreNotUsedAfterAnApply(t *testing.T) {
	for _, c := range []struct{ from, to netip.Addr }{{addrA, addrB}, {addrA6, addrB6}} {
		t.Run(c.to.String(), func(t *testing.T) {
			onOneCPU(t)
			r := newRig(t, model.MPLSoUDP, false, goesDirectly)
			host := fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(c.to, c.to.BitLen())}
			send := func(want string) {
				t.Helper()
				for range 2 { // the second packet finds the entries in the caches
					before := must.Get(r.Drops())(t)
					code, _ := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, c.from, c.to, 0, 64, "x")))
					if got := r.drop(t, before); got != want || code != map[bool]uint32{true: actRedirect, false: actShot}[want == "none"] {
						t.Errorf("action %d and drop reason %s, want %s", code, got, want)
					}
				}
			}
			apply := func(change func()) {
				t.Helper()
				change()
				must.Get(r.Apply(r.tables))(t)
			}
			route, vif := r.tables.Routes[host], r.tables.Vifs[uint32(r.vif)]
			send("none")
			apply(func() { r.tables.Routes[host] = layout.Route{Nexthop: nhFlood + 100} })
			send("discard")
			apply(func() { r.tables.Routes[host] = route })
			send("none")
			apply(func() { vif.MAC[5]++; r.tables.Vifs[uint32(r.vif)] = vif })
			send("spoofed_mac")
			apply(func() { vif.MAC[5]--; r.tables.Vifs[uint32(r.vif)] = vif })
			send("none")

			// The caches are in use: a change without Apply has no effect.
			elsewhere := layout.Route{Nexthop: nhFlood + 100}
			if c.to.Is4() {
				must.Succeed(t, r.maps.Hosts4.Put(layout.Host4Key{VRF: 1, Address: layout.Network4(c.to)}, elsewhere))
			} else {
				must.Succeed(t, r.maps.Hosts6.Put(layout.Host6Key{VRF: 1, Address: layout.AddressOf(c.to)}, elsewhere))
			}
			send("none")
			apply(func() {})
			send("none") // Apply has repaired the map
		})
	}
}

// While an agent changes the tables, and after it has died meanwhile, the programs do not use
// the caches. The next Apply makes them use the caches again, but not on a PREEMPT_RT kernel.
func TestProgramsDoNotUseTheirCachesWhileTablesChange(t *testing.T) {
	onOneCPU(t)
	r := newRig(t, model.MPLSoUDP, false, goesDirectly)
	generation := func() (n uint64) {
		t.Helper()
		must.Succeed(t, r.maps.CacheGeneration.Lookup(uint32(0), &n))
		return n
	}
	send := func() string {
		t.Helper()
		before := must.Get(r.Drops())(t)
		r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "x")))
		return r.drop(t, before)
	}
	if got := send(); got != "none" {
		t.Fatalf("drop reason %s, want none", got)
	}
	was := generation()
	key := layout.Host4Key{VRF: 1, Address: layout.Network4(addrB)}
	err := r.changeCached(func() error {
		if n := generation(); n%2 == 0 {
			t.Errorf("the generation is %d during a change, want an odd number", n)
		}
		for _, c := range []struct {
			route layout.Route
			want  string
		}{{layout.Route{Nexthop: nhFlood + 100}, "discard"}, {layout.Route{Nexthop: nhTunnel, Label: 0x321}, "none"}, {layout.Route{Nexthop: nhFlood + 100}, "discard"}} {
			must.Succeed(t, r.maps.Hosts4.Put(key, c.route))
			if got := send(); got != c.want {
				t.Errorf("after the change to nexthop %d the drop reason is %s, want %s", c.route.Nexthop, got, c.want)
			}
		}
		return unix.EINTR
	})
	if err == nil || generation()%2 == 0 {
		t.Errorf("after a failed change the error is %v and the generation %d, want an odd number", err, generation())
	}
	must.Get(r.Apply(r.tables))(t)
	if n := generation(); n%2 != 0 || n <= was {
		t.Errorf("after an Apply the generation is %d, want an even number above %d", n, was)
	}
	if got := send(); got != "none" {
		t.Errorf("after an Apply the drop reason is %s, want none", got)
	}
	r.preemptRT = true
	must.Get(r.Apply(r.tables))(t)
	if n := generation(); n%2 == 0 {
		t.Errorf("after an Apply on a PREEMPT_RT kernel the generation is %d, want an odd number", n)
	}
}
