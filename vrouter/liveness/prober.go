// Package liveness tests by ICMP echo whether other nodes answer on the underlay, sooner than
// their alive keys end. The caller can give its Prober other requests, such as ARP, to test whether workloads answer.
package liveness

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"windtunnel/internal/pause"
)

// Prober sends echo requests to the underlay addresses of nodes. The kernels of these nodes
// reply, also while no agent runs there.
//
// An address is silent if it has replied before and does not reply for Missed intervals.
// It stays silent until Replies requests in a row have a reply. An address that has
// never replied is silent only if another address of its node replies: a firewall may drop the
// requests to the node. A node is silent if some of its
// addresses are silent, and no other address replies.
type Prober struct {
	interval time.Duration
	send     func(to, source netip.Addr) // sends a request; replies arrive at Heard
	changed  chan struct{}               // receives after the result of Addresses has changed

	mu     sync.Mutex
	peers  map[netip.Addr]*peer
	silent map[netip.Addr]bool
}

// Target is the node of an underlay address, and the source address of the tests.
type Target struct {
	Node   string
	Source netip.Addr // of the requests: they take the path of packets from this address
}

// DefaultInterval is the interval if the configuration has none.
const DefaultInterval = time.Second

// Missed intervals without a reply make a node silent. Replies is the number of requests in a
// row with a reply after which an address counts again.
const (
	Missed  = 3
	Replies = 3
)

// peer is an underlay address.
type peer struct {
	Target
	last    time.Time // of the last reply
	asked   bool      // the last request has no reply yet
	replies int       // requests in a row with a reply, at most Replies
	replied bool      // replies was Replies at least once
	tried   int       // requests so far
}

func newProber(interval time.Duration, send func(to, source netip.Addr)) *Prober {
	return &Prober{interval: interval, send: send, changed: make(chan struct{}, 1), peers: map[netip.Addr]*peer{}, silent: map[netip.Addr]bool{}}
}

// Start starts a prober that ends with ctx. It calls send for each request, and the caller calls Heard for each reply.
func Start(ctx context.Context, interval time.Duration, send func(to netip.Addr), wait *sync.WaitGroup) *Prober {
	p := newProber(interval, func(to, _ netip.Addr) { send(to) })
	wait.Go(func() { p.run(ctx) })
	return p
}

// Changed receives a value after the result of Addresses has changed.
func (p *Prober) Changed() <-chan struct{} { return p.changed }

// Addresses returns the silent addresses.
func (p *Prober) Addresses() map[netip.Addr]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.silent)
}

// Silent returns the silent nodes.
func (p *Prober) Silent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes := map[string]bool{}
	for a := range p.silent {
		if x := p.peers[a]; x != nil {
			nodes[x.Node] = true
		}
	}
	for a, x := range p.peers {
		if x.replied && !p.silent[a] {
			delete(nodes, x.Node)
		}
	}
	return slices.Collect(maps.Keys(nodes))
}

// Set replaces the addresses to test. An address that stays keeps its state.
func (p *Prober) Set(targets map[netip.Addr]Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.peers, func(a netip.Addr, x *peer) bool { return targets[a] != x.Target })
	for a, target := range targets {
		if p.peers[a] == nil {
			p.peers[a] = &peer{Target: target}
		}
	}
}

// Heard records a reply. A second reply to the same request does not count.
func (p *Prober) Heard(from netip.Addr) {
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
			for a, source := range p.ask() {
				p.send(a, source)
			}
			next = now.Add(p.interval*3/4 + rand.N(p.interval/4))
		}
		select {
		case <-time.After(time.Until(p.update(now, next))):
		case <-ctx.Done():
		}
	}
}

// ask records that each address gets a request, and returns the addresses with their sources. If
// the last request to an address has no reply, the replies are not in a row.
func (p *Prober) ask() map[netip.Addr]netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[netip.Addr]netip.Addr{}
	for a, x := range p.peers {
		all[a] = x.Source
		if x.asked && x.replies < Replies {
			x.replies = 0
		}
		x.asked = true
		x.tried++
	}
	return all
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

// update finds the silent addresses. It returns the time of the next call. This is the time next, or
// an earlier time at which an address can become silent.
func (p *Prober) update(now, next time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	silent, answers := map[netip.Addr]bool{}, map[string]bool{}
	for _, x := range p.peers {
		answers[x.Node] = answers[x.Node] || x.replies == Replies
	}
	for a, x := range p.peers {
		switch end := x.last.Add(Missed * p.interval); {
		case !now.Before(end):
			x.replies = 0
		case end.Before(next):
			next = end
		}
		if (x.replied || answers[x.Node] && x.tried > Missed+Replies) && x.replies < Replies {
			silent[a] = true
		}
	}
	if !maps.Equal(silent, p.silent) {
		p.silent = silent
		pause.Wake(p.changed)
	}
	return next
}
