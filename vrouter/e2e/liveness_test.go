package e2e

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"windtunnel/internal/must"
)

// spread is flows from one workload to a service that several servers have.
type spread struct {
	mu sync.Mutex
	at []int // by flow: the server at which its last datagram arrived; -1: none
}

// send sends a datagram of each flow each 2 ms until the test ends.
func (s *spread) send(t *testing.T, from *workload, service netip.Addr, servers []*workload, flows int) {
	t.Helper()
	var open []net.Conn
	s.at = slices.Repeat([]int{-1}, flows)
	to := netip.AddrPortFrom(service, 9000).String()
	for i, server := range servers {
		var c net.PacketConn
		must.Succeed(t, in(server.ns, func() (err error) { c, err = net.ListenPacket("udp", to); return err }))
		t.Cleanup(func() { c.Close() })
		go func() {
			flow := make([]byte, 64)
			for {
				if _, _, err := c.ReadFrom(flow); err != nil {
					return
				}
				s.mu.Lock()
				s.at[flow[0]] = i
				s.mu.Unlock()
			}
		}()
	}
	for range flows {
		c, err := from.dial("udp", to)
		must.Succeed(t, err)
		t.Cleanup(func() { c.Close() })
		open = append(open, c)
	}
	go func() {
		for t.Context().Err() == nil {
			for flow, c := range open {
				c.Write([]byte{byte(flow)})
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
}

// counts returns the number of flows at each of two servers.
func (s *spread) counts() (first, second int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.at {
		switch server {
		case 0:
			first++
		case 1:
			second++
		}
	}
	return first, second
}

// With liveness, the packets of an ECMP route move to the other node within a second after a
// node's link is cut, although the alive key of the node does not end: each node has a file
// store. When the link is back, the route uses both nodes again.
func TestAnECMPRouteMovesWhenALinkIsCut(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{nodes: 3, config: map[string]any{"liveness": "300ms"}})
	x, servers, service := b.service()
	var s spread
	s.send(t, x, service, servers, 32)
	await := func(within time.Duration, what string, is func(first, second int) bool) time.Duration {
		t.Helper()
		began := time.Now()
		for first, second := s.counts(); !is(first, second); first, second = s.counts() {
			if time.Since(began) > within {
				t.Fatalf("%s: after %v %d flows are at s1 and %d at s2", what, within, first, second)
			}
			time.Sleep(time.Millisecond)
		}
		return time.Since(began)
	}
	both := func(first, second int) bool { return first > 0 && second > 0 && first+second == 32 }
	sw := b.handle(b.sw)
	port, err := sw.LinkByName("port2")
	b.must(err)
	for range 3 {
		await(10*time.Second, "the route uses both nodes", both)
		time.Sleep(2 * time.Second) // the tests count three replies
		b.must(sw.LinkSetDown(port))
		took := await(5*time.Second, "the flows move", func(first, _ int) bool { return first == 32 })
		t.Logf("all flows are at s1 %v after the cut", took)
		if took > time.Second {
			t.Errorf("the flows moved after %v, want at most 1 s", took)
		}
		b.must(sw.LinkSetUp(port))
	}
	await(10*time.Second, "the route uses both nodes again", both)
}
