package fleet

import (
	"maps"
	"net/netip"
	"sync"
)

// claims are the addresses that changes in progress on this host have chosen, by
// network: the copy has them only when the changes are made, and without this
// all that are made side by side would want the same one. It saves conflicts in
// the store and decides nothing.
type claims struct {
	mu sync.Mutex
	of map[string]map[netip.Addr]bool
}

// choose calls a function with what is claimed in a network, and claims what that
// returns.
func (c *claims) choose(network string, choose func(claimed map[netip.Addr]bool) []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range choose(c.of[network]) {
		inner(c.of, network)[a] = true
	}
}

// release gives claims up.
func (c *claims) release(network string, chosen []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range chosen {
		delete(c.of[network], a)
	}
	maps.DeleteFunc(c.of, func(_ string, all map[netip.Addr]bool) bool { return len(all) == 0 })
}
