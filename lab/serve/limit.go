package serve

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// limiter is a listener that limits the number of open connections. A new connection above the limit
// closes another one: the oldest idle connection of the client with the most connections. So clients
// that send nothing cannot block others.
type limiter struct {
	net.Listener
	all, each int // open connections: of all clients, of each client

	mu   sync.Mutex
	open []*connection // oldest first
}

// connection is an open connection. busy: its request is complete, and its answer is not.
type connection struct {
	net.Conn
	client netip.Prefix
	busy   bool
}

// Accept returns the next connection.
func (l *limiter) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if n := (&connection{Conn: c, client: clientOf(c.RemoteAddr())}); l.admit(n) {
			return n, nil
		}
		c.Close()
	}
}

// clientOf returns the IPv4 address of a client, or the IPv6 network of 64 bits, whose addresses
// one host can use.
func clientOf(remote net.Addr) netip.Prefix {
	at, _ := remote.(*net.TCPAddr)
	a := at.AddrPort().Addr().Unmap().WithZone("")
	p, _ := a.Prefix(min(a.BitLen(), 64)) // an invalid address has the zero prefix
	return p
}

// admit adds a connection. It returns false if all connections that it could replace are busy.
func (l *limiter) admit(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := map[netip.Prefix]int{}
	for _, o := range l.open {
		count[o.client]++
	}
	if count[c.client] < l.each && len(l.open) < l.all {
		l.open = append(l.open, c)
		return true
	}
	replaced := -1
	for i, o := range l.open {
		if !o.busy && (count[c.client] < l.each || o.client == c.client) && (replaced < 0 || count[o.client] > count[l.open[replaced].client]) {
			replaced = i
		}
	}
	if replaced < 0 {
		return false
	}
	l.open[replaced].Close()
	l.open = append(append(l.open[:replaced:replaced], l.open[replaced+1:]...), c)
	return true
}

// note is http.Server.ConnState. A connection becomes active when its request is complete.
func (l *limiter) note(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range l.open {
		if net.Conn(o) != conn {
			continue
		}
		if o.busy = state == http.StateActive; state == http.StateClosed || state == http.StateHijacked {
			l.open = append(l.open[:i:i], l.open[i+1:]...)
		}
		return
	}
}
