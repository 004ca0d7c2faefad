package udptun

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Route maps a network to a peer.
type Route struct {
	To   netip.Prefix
	Peer netip.AddrPort
}

// ParseRoute parses PREFIX=ADDRESS:PORT, such as "10.5.1.0/24=192.0.2.2:8285" or
// "fd00:1::/64=[2001:db8::2]:8285".
func ParseRoute(text string) (Route, error) {
	network, peer, ok := strings.Cut(text, "=")
	if !ok {
		return Route{}, fmt.Errorf("route %q: want PREFIX=ADDRESS:PORT", text)
	}
	to, err := netip.ParsePrefix(network)
	if err != nil {
		return Route{}, fmt.Errorf("route %q: the network: %w", text, err)
	}
	via, err := netip.ParseAddrPort(peer)
	if err != nil {
		return Route{}, fmt.Errorf("route %q: the peer: %w", text, err)
	}
	r := Route{to, via}
	return r, r.check()
}

func (r Route) String() string { return r.To.String() + "=" + r.Peer.String() }

func (r Route) check() error {
	switch {
	case !r.To.IsValid() || !r.Peer.IsValid():
		return fmt.Errorf("route %q: want a network and a peer", r)
	case r.To != r.To.Masked():
		return fmt.Errorf("route %q: the network has bits set beyond its length; write %s", r, r.To.Masked())
	case r.To.Addr().Is4In6() || r.Peer.Addr().Is4In6():
		return fmt.Errorf("route %q: write IPv4 addresses without ::ffff", r)
	case r.Peer.Port() == 0 || r.Peer.Addr().IsUnspecified() || r.Peer.Addr().IsMulticast():
		return fmt.Errorf("route %q: a datagram cannot be sent to this peer address", r)
	}
	return nil
}

// Routes finds the peer for an address by longest prefix. It never changes, so any
// goroutine may use it.
type Routes struct {
	lengths [2][]int // lengths of the prefixes, the longest first; IPv4, IPv6
	behind  map[netip.Prefix]netip.AddrPort
	peers   map[netip.AddrPort]bool
}

// NewRoutes makes the table. Each network may occur once.
func NewRoutes(list []Route) (*Routes, error) {
	if len(list) == 0 {
		return nil, errors.New("there is no route: packets need a route to a peer")
	}
	t := &Routes{behind: map[netip.Prefix]netip.AddrPort{}, peers: map[netip.AddrPort]bool{}}
	for _, r := range list {
		if err := r.check(); err != nil {
			return nil, err
		}
		if other, twice := t.behind[r.To]; twice {
			return nil, fmt.Errorf("routes: %s has the peers %s and %s; give it one peer", r.To, other, r.Peer)
		}
		t.behind[r.To], t.peers[r.Peer] = r.Peer, true
		family := &t.lengths[familyOf(r.To.Addr())]
		if !slices.Contains(*family, r.To.Bits()) {
			*family = append(*family, r.To.Bits())
		}
	}
	for i := range t.lengths {
		slices.Sort(t.lengths[i])
		slices.Reverse(t.lengths[i])
	}
	return t, nil
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// Lookup returns the peer of the longest network that contains the address.
func (t *Routes) Lookup(a netip.Addr) (peer netip.AddrPort, ok bool) {
	for _, bits := range t.lengths[familyOf(a)] {
		network, err := a.Prefix(bits)
		if err != nil {
			return netip.AddrPort{}, false
		}
		if peer, ok := t.behind[network]; ok {
			return peer, true
		}
	}
	return netip.AddrPort{}, false
}

// Knows reports whether a network is behind the peer.
func (t *Routes) Knows(peer netip.AddrPort) bool { return t.peers[peer] }

// Peers returns all peers, sorted.
func (t *Routes) Peers() []netip.AddrPort {
	return slices.SortedFunc(maps.Keys(t.peers), netip.AddrPort.Compare)
}
