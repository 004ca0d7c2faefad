package liveness

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/internal/must"
)

const interval = 300 * time.Millisecond

// wire replies to the requests of a prober at once, except for addresses that are cut.
type wire struct {
	*Prober
	mu  sync.Mutex
	cut map[netip.Addr]bool
}

var b, c = netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::3")

// onWire runs a test of a prober of b and c with simulated time. before runs before each request.
func onWire(t *testing.T, before func(*wire, netip.Addr), test func(*wire)) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{cut: map[netip.Addr]bool{}}
		w.Prober = newProber(interval, func(a, _ netip.Addr) {
			if before != nil {
				before(w, a)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if !w.cut[a] {
				w.Heard(a)
			}
		})
		w.Set(map[netip.Addr]Target{b: {Node: "b"}, c: {Node: "c"}})
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx) }()
		defer func() { end(); <-done }()
		test(w)
	})
}

func (w *wire) setCut(a netip.Addr, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[a] = cut
}

// neverSilent fails the test if a node is silent within five minutes.
func (w *wire) neverSilent(t *testing.T) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 5*time.Minute; time.Sleep(time.Millisecond) {
		if silent := w.Silent(); len(silent) > 0 {
			t.Errorf("silent nodes after %v: %q", time.Since(began), silent)
			return
		}
	}
}

func (w *wire) isSilent(node string) bool { return slices.Contains(w.Silent(), node) }

// until returns the time until a condition holds, at most a minute.
func until(condition func() bool) time.Duration {
	began := time.Now()
	for !condition() && time.Since(began) < time.Minute {
		time.Sleep(time.Millisecond)
	}
	return time.Since(began)
}

func TestANodeThatStopsReplyingIsSilentAfterThreeIntervals(t *testing.T) {
	onWire(t, nil, func(w *wire) {
		for range 20 {
			time.Sleep(10 * time.Second)
			w.setCut(b, true)
			if took := until(func() bool { return w.isSilent("b") }); took < 2*interval || took > 3*interval+time.Millisecond {
				t.Errorf("node b is silent %v after its last possible reply, want 2 to 3 intervals of %v", took, interval)
			}
			if w.isSilent("c") {
				t.Error("node c is silent, but it replies")
			}
			<-w.Changed()
			w.setCut(b, false)
			if took := until(func() bool { return !w.isSilent("b") }); took < interval || took > 3*interval {
				t.Errorf("node b is no longer silent after %v, want the time of three replies", took)
			}
			<-w.Changed()
		}
	})
}

// A node with an address that replies is not silent, and its silent address is known.
func TestANodeWithAnotherAddressThatRepliesIsNotSilent(t *testing.T) {
	onWire(t, nil, func(w *wire) {
		second := netip.MustParseAddr("198.51.100.2")
		w.Set(map[netip.Addr]Target{b: {Node: "b"}, second: {Node: "b"}})
		time.Sleep(10 * time.Second)
		w.setCut(second, true)
		if until(func() bool { return w.Addresses()[second] }); len(w.Addresses()) != 1 || len(w.Silent()) > 0 {
			t.Errorf("silent addresses %v and nodes %q, want address %s and no node", w.Addresses(), w.Silent(), second)
		}
		w.setCut(b, true)
		if until(func() bool { return w.isSilent("b") }); !w.isSilent("b") {
			t.Error("node b is not silent, but none of its addresses replies")
		}
	})
}

func TestTwoLostRepliesDoNotMakeANodeSilent(t *testing.T) {
	sent := map[netip.Addr]int{}
	onWire(t, func(w *wire, a netip.Addr) {
		sent[a]++
		w.setCut(a, sent[a] > 10 && sent[a]%3 > 0)
	}, func(w *wire) { w.neverSilent(t) })
	if sent[b] < 1000 {
		t.Errorf("%d requests to b, want at least 1000", sent[b])
	}
}

// A silent node stays silent if it loses every third request, also if each reply arrives twice.
func TestASilentNodeStaysSilentUntilThreeRequestsInARowHaveAReply(t *testing.T) {
	sent := 0
	onWire(t, func(w *wire, a netip.Addr) {
		if a != b {
			return
		}
		sent++
		w.setCut(b, sent > 10 && (sent < 20 || sent%3 == 0))
		if !w.cut[b] {
			w.Heard(b)
		}
	}, func(w *wire) {
		if until(func() bool { return w.isSilent("b") }); !w.isSilent("b") {
			t.Fatal("node b is not silent, but it does not reply")
		}
		if took := until(func() bool { return !w.isSilent("b") }); took < time.Minute {
			t.Errorf("node b is no longer silent after %v, but it loses every third request", took)
		}
	})
	if sent < 100 {
		t.Errorf("%d requests to b, want at least 100", sent)
	}
}

func TestANodeThatNeverRepliesIsNotSilent(t *testing.T) {
	onWire(t, nil, func(w *wire) {
		time.Sleep(time.Second)
		far := netip.MustParseAddr("192.0.2.4")
		w.setCut(far, true)
		w.Set(map[netip.Addr]Target{b: {Node: "b"}, far: {Node: "d"}})
		w.neverSilent(t)
	})
}

func TestAPauseOfTheProberMakesNoNodeSilent(t *testing.T) {
	pauses := 0
	onWire(t, func(w *wire, a netip.Addr) {
		if a == b {
			time.Sleep(10 * time.Second) // the process was stopped
			pauses++
		}
	}, func(w *wire) { w.neverSilent(t) })
	if pauses < 20 {
		t.Errorf("%d pauses, want at least 20", pauses)
	}
}

// The process stops after its requests have left. Their replies arrive a moment after it continues.
func TestAPauseBeforeTheRepliesMakesNoNodeSilent(t *testing.T) {
	pauses := 0
	onWire(t, func(w *wire, a netip.Addr) {
		w.setCut(a, true) // no reply at once
		time.AfterFunc(10*time.Second+time.Millisecond, func() { w.Heard(a) })
		if a == b {
			time.Sleep(10 * time.Second)
			pauses++
		}
	}, func(w *wire) { w.neverSilent(t) })
	if pauses < 20 {
		t.Errorf("%d pauses, want at least 20", pauses)
	}
}

func TestRepliesOfTheKernelArrive(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("raw sockets need root")
	}
	ctx, end := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	p := Run(ctx, 20*time.Millisecond, func(f func() error) error { return f() }, slog.New(slog.DiscardHandler), &wait)
	local := map[netip.Addr]Target{netip.MustParseAddr("127.0.0.1"): {"four", netip.MustParseAddr("127.0.0.2")}, netip.IPv6Loopback(): {Node: "six"}}
	p.Set(local)
	replies := func() (list []string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for a, x := range p.peers {
			list = append(list, fmt.Sprint(a, " ", x.replied))
		}
		slices.Sort(list)
		return list
	}
	want := []string{"127.0.0.1 true", "::1 true"}
	must.Eventually(t, "replies", func() error {
		if got := replies(); !slices.Equal(got, want) {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
	end()
	wait.Wait()
}

// The agent restarts while a link is cut: it has never heard the address there, but another one of the node.
func TestAnAddressThatNeverRepliesIsSilentIfAnotherOfItsNodeReplies(t *testing.T) {
	onWire(t, nil, func(w *wire) {
		w.setCut(c, true)
		w.Set(map[netip.Addr]Target{b: {Node: "b"}, c: {Node: "b"}})
		time.Sleep(10 * interval)
		if silent := w.Addresses(); len(silent) != 1 || !silent[c] {
			t.Errorf("the addresses %v are silent, want %s", silent, c)
		}
		w.setCut(c, false)
		time.Sleep(10 * interval)
		if silent := w.Addresses(); len(silent) != 0 {
			t.Errorf("the addresses %v are silent, want none", silent)
		}
	})
}
