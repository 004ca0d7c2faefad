package fleet

import (
	"maps"
	"net/netip"
	"sync"
)

// claims are the addresses of uncommitted changes of this host, by network.
// They keep concurrent changes from choosing the same address and having to
// retry. The store refuses double allocations also without claims.
type claims struct {
	mu sync.Mutex
	of map[string]map[netip.Addr]bool

	first sync.Mutex // held while a port is added to a place without a key
}

// first makes the additions of ports to a place wait until one of them has written the key of
// the place, since the commits of the others would fail. Call done after the addition.
func (f *Fleet) first(p place) (done func()) {
	listed := func() (is bool) {
		f.Peek(func(v *View) { is = v.listed[p.network][p.node] != 0 })
		return is
	}
	if !listed() {
		f.claims.first.Lock()
		if !listed() {
			return f.claims.first.Unlock
		}
		f.claims.first.Unlock()
	}
	return func() {}
}

// choose calls a function with the claimed addresses of a network, and claims
// the addresses that the function returns.
func (c *claims) choose(network string, choose func(claimed map[netip.Addr]bool) []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range choose(c.of[network]) {
		inner(c.of, network)[a] = true
	}
}

// release removes claims.
func (c *claims) release(network string, chosen []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range chosen {
		delete(c.of[network], a)
	}
	maps.DeleteFunc(c.of, func(_ string, all map[netip.Addr]bool) bool { return len(all) == 0 })
}
