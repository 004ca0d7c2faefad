// Package liveness tests by ICMP echo whether other nodes answer on the underlay, sooner than
// their alive keys end.
package liveness

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Prober sends echo requests to the underlay addresses of nodes. The kernels of these nodes
// reply, also while no agent runs there.
//
// A node is silent if an address that has replied before does not reply for Missed intervals.
// It stays silent until Replies requests in a row have a reply. A node whose addresses have
// never replied is not silent: a firewall may drop the requests.
type Prober struct {
	interval time.Duration
	send     func(netip.Addr) // sends a request; replies arrive at heard
	changed  chan struct{}    // receives after the result of Silent has changed

	mu     sync.Mutex
	peers  map[netip.Addr]*peer
	silent map[string]bool
}

// Missed intervals without a reply make a node silent. Replies is the number of requests in a
// row with a reply after which an address counts again.
const (
	Missed  = 3
	Replies = 3
)

// peer is an underlay address.
type peer struct {
	node    string
	last    time.Time // of the last reply
	asked   bool      // the last request has no reply yet
	replies int       // requests in a row with a reply, at most Replies
	replied bool      // replies was Replies at least once
}

func newProber(interval time.Duration, send func(netip.Addr)) *Prober {
	return &Prober{interval: interval, send: send, changed: make(chan struct{}, 1), peers: map[netip.Addr]*peer{}, silent: map[string]bool{}}
}

// Changed receives a value after the result of Silent has changed.
func (p *Prober) Changed() <-chan struct{} { return p.changed }

// Silent returns the silent nodes.
func (p *Prober) Silent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.silent))
}

// Set replaces the addresses to test. The values are their nodes. An address that stays keeps
// its state.
func (p *Prober) Set(nodes map[netip.Addr]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.peers, func(a netip.Addr, x *peer) bool { return nodes[a] != x.node })
	for a, node := range nodes {
		if p.peers[a] == nil {
			p.peers[a] = &peer{node: node}
		}
	}
}

// heard records a reply. A second reply to the same request does not count.
func (p *Prober) heard(from netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.peers[from]
	if x == nil {
		return
	}
	if x.last = time.Now(); x.asked {
		x.asked, x.replies = false, min(x.replies+1, Replies)
		x.replied = x.replied || x.replies == Replies
	}
}

// run sends requests and updates the silent nodes until ctx ends. Pauses between requests are
// random and shorter than interval, so that nodes do not send at the same time and Missed
// requests fit into the limit.
func (p *Prober) run(ctx context.Context) {
	for next := time.Now(); ctx.Err() == nil; {
		now := time.Now()
		if late := now.Sub(next); late > p.interval {
			p.excuse(now, late)
		}
		if !now.Before(next) {
			for _, a := range p.ask() {
				p.send(a)
			}
			next = now.Add(p.interval*3/4 + rand.N(p.interval/4))
		}
		select {
		case <-time.After(time.Until(p.update(now, next))):
		case <-ctx.Done():
		}
	}
}

// ask records that each address gets a request, and returns the addresses. If the last request
// to an address has no reply, the replies are not in a row.
func (p *Prober) ask() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.peers {
		if x.asked && x.replies < Replies {
			x.replies = 0
		}
		x.asked = true
	}
	return slices.Collect(maps.Keys(p.peers))
}

// excuse ignores a time in which this process did not run.
func (p *Prober) excuse(now time.Time, late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.peers {
		if x.last = x.last.Add(late); x.last.After(now) {
			x.last = now
		}
	}
}

// update finds the silent nodes. It returns the time of the next call. This is the time next, or
// an earlier time at which an address can become silent.
func (p *Prober) update(now, next time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	silent := map[string]bool{}
	for _, x := range p.peers {
		switch end := x.last.Add(Missed * p.interval); {
		case !now.Before(end):
			x.replies = 0
		case end.Before(next):
			next = end
		}
		if x.replied && x.replies < Replies {
			silent[x.node] = true
		}
	}
	if !maps.Equal(silent, p.silent) {
		p.silent = silent
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
	return next
}
