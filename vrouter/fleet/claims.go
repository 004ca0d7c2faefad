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
