package direct

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

var (
	here  = netip.MustParseAddr("192.0.2.1")
	there = netip.MustParseAddr("192.0.2.2")
)

func TestLabel(t *testing.T) {
	for _, c := range []struct {
		network uint32
		want    model.MAC
	}{
		{0, model.MAC{0x06, 0, 192, 0, 2, 1}},
		{1, model.MAC{0x06, 1, 192, 0, 2, 1}},
		{0xabc, model.MAC{0xa6, 0xbc, 192, 0, 2, 1}},
		{4095, model.MAC{0xf6, 0xff, 192, 0, 2, 1}},
	} {
		got := Label(c.network, here)
		if got != c.want || !got.IsUnicast() || got[0]&2 == 0 {
			t.Errorf("the label of network %d is %s, want %s, a locally administered unicast address", c.network, got, c.want)
		}
		if !IsLabelOf(got, here) || IsLabelOf(got, there) || IsLabelOf(got, netip.MustParseAddr("2001:db8::1")) {
			t.Errorf("IsLabelOf(%s) must be true for %s alone", got, here)
		}
		if node, ok := nodeOf(got); ok != (c.network == 0) || node != here {
			t.Errorf("nodeOf(%s) = %s, %v; want %s, and true for network 0 alone", got, node, ok, here)
		}
	}
}

func TestOnlyTestFramesAreParsed(t *testing.T) {
	b := message{kind: request, number: 7}.frame(Label(0, there), Label(0, here))
	if m, to, from, ok := parse(b); !ok || m != (message{kind: request, number: 7, last: AllLabels}) || to != Label(0, there) || from != Label(0, here) {
		t.Errorf("the parsed frame is %+v from %s to %s (%v), want request 7 from %s to %s", m, from, to, ok, Label(0, here), Label(0, there))
	}
	if len(b) < 60 {
		t.Errorf("the frame has %d bytes; Ethernet needs 60", len(b))
	}
	for n := range 39 {
		if _, _, _, ok := parse(b[:n]); ok {
			t.Errorf("parse accepts the first %d bytes of a frame", n)
		}
	}
	b[20] ^= 1
	if _, _, _, ok := parse(b); ok {
		t.Error("parse accepts a frame with a wrong magic")
	}
}

// wire connects two testers. lost returns true for the frames that it loses.
type wire struct {
	mu   sync.Mutex
	ends map[int]*end
	lost func(frame []byte) bool
	seen []model.MAC // source addresses of the frames
	// ability and last are in the replies (frame.go).
	ability byte
	last    uint16
}

// end is the socket of one node on a wire.
type end struct {
	net.PacketConn
	wire   *wire
	index  int
	frames chan []byte
	closed chan struct{}
	failed chan struct{}
}

func (w *wire) listen(s Socket) (net.PacketConn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	index := s.Ifindex
	e := &end{wire: w, index: index, frames: make(chan []byte, 100), closed: make(chan struct{}), failed: make(chan struct{})}
	w.ends[index] = e
	return e, nil
}

func (e *end) WriteTo(b []byte, _ net.Addr) (int, error) {
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	e.wire.seen = append(e.wire.seen, model.MAC(b[6:12]))
	if e.wire.lost != nil && e.wire.lost(b) {
		return len(b), nil
	}
	for index, other := range e.wire.ends {
		if index != e.index {
			other.frames <- b
		}
	}
	e.wire.answer(e, b)
	return len(b), nil
}

// answer replies to requests, as the program fabric_tc of the other node does.
func (w *wire) answer(e *end, b []byte) {
	m, to, from, ok := parse(b)
	if !ok || m.kind != request {
		return
	}
	r := message{kind: reply, number: m.number}.frame(from, to)
	r[headerLength+len(magic)+1+8] = w.ability
	binary.BigEndian.PutUint16(r[headerLength+len(magic)+1+9:], w.last)
	if w.lost == nil || !w.lost(r) {
		e.frames <- r
	}
}

func (e *end) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case f := <-e.frames:
		return copy(b, f), nil, nil
	case <-e.closed:
	case <-e.failed:
	}
	return 0, nil, errors.New("the socket is closed or its device is down")
}

func (e *end) Close() error { close(e.closed); return nil }

func (e *end) SetWriteDeadline(time.Time) error { return nil }

func (w *wire) lose(f func([]byte) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = f
}

// onWire runs a test with a wire and the testers of two nodes, here and there. Each node
// is the target of the other node's tester. The clock is synctest's.
func onWire(t *testing.T, lost func(frame []byte) bool, test func(t *testing.T, w *wire, a, b *Tester)) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{ends: map[int]*end{}, lost: lost}
		a, b := NewTester(w.listen, slog.New(slog.DiscardHandler)), NewTester(w.listen, slog.New(slog.DiscardHandler))
		defer a.Close()
		defer b.Close()
		a.Set(map[netip.Addr]Target{there: {Source: here, Ifindex: 1}}, map[netip.Addr]int{here: 1}, []uint32{7})
		must.Equal(t, Unknown, a.State(there))
		b.Set(map[netip.Addr]Target{here: {Source: there, Ifindex: 2}}, map[netip.Addr]int{there: 2}, nil)
		test(t, w, a, b)
	})
}

func loseAll([]byte) bool { return true }

// expect waits for a value of Changed. Then the state of a target must be want.
func expect(t *testing.T, x *Tester, target netip.Addr, want State, within time.Duration) {
	t.Helper()
	select {
	case <-x.Changed():
	case <-time.After(within):
		t.Errorf("Changed has no value within %v", within)
	}
	if got := x.State(target); got != want {
		t.Errorf("target %s has state %d, want %d", target, got, want)
	}
}

func TestALinkIsTestedAgainAndAgain(t *testing.T) {
	onWire(t, nil, func(t *testing.T, w *wire, a, b *Tester) {
		expect(t, a, there, Works, 100*time.Millisecond)
		expect(t, b, here, Works, 100*time.Millisecond)
		// A link must pass frames in both directions.
		w.lose(func(f []byte) bool { return model.MAC(f[:6]) == Label(0, here) })
		expect(t, a, there, Stopped, 8*time.Second)
		expect(t, b, here, Stopped, 8*time.Second)
		w.lose(nil)
		expect(t, a, there, Works, 3*time.Second)
	})
}

// The wait between the tests of a link that has failed doubles up to the interval of the tests
// of a link that works. So the link is tested for ever.
func TestAFailedLinkIsTestedWithBackOff(t *testing.T) {
	onWire(t, nil, func(t *testing.T, w *wire, a, _ *Tester) {
		expect(t, a, there, Works, 100*time.Millisecond)
		var sent []time.Time
		w.lose(func(f []byte) bool {
			if m, to, _, ok := parse(f); ok && m.kind == request && to == Label(0, there) {
				sent = append(sent, time.Now())
			}
			return true
		})
		expect(t, a, there, Stopped, 8*time.Second)
		time.Sleep(time.Hour)
		w.mu.Lock()
		var waits []time.Duration
		for i := attempts; i < len(sent); i += attempts { // the first request after each failed test
			waits = append(waits, sent[i].Sub(sent[i-1]).Round(100*time.Millisecond)-(firstWait<<(attempts-1)))
		}
		w.mu.Unlock()
		if len(waits) < 500 {
			t.Fatalf("the link was tested %d times in an hour, want at least 500", len(waits))
		}
		for i, got := range waits[:6] {
			if want := min(again<<i, period); got != want {
				t.Errorf("wait %d is %v, want %v", i+1, got, want)
			}
		}
		must.Equal(t, period, waits[len(waits)-1])
		w.lose(nil)
		expect(t, a, there, Works, period+time.Second)
	})
}

// The reply of a node that restores bridged frames has another state than the reply of a node
// of an earlier version.
func TestTheAbilityInAReplyIsAState(t *testing.T) {
	onWire(t, nil, func(t *testing.T, w *wire, a, b *Tester) {
		expect(t, a, there, Works, 100*time.Millisecond)
		w.mu.Lock()
		w.ability = ability
		w.mu.Unlock()
		expect(t, a, there, Bridges, 6*time.Second)
		w.mu.Lock()
		w.ability = 0
		w.mu.Unlock()
		expect(t, a, there, Works, 6*time.Second)
	})
}

// A reply says of which networks the node receives labels. A node of an earlier version
// receives all labels.
func TestAReplyHasTheLastLabel(t *testing.T) {
	onWire(t, nil, func(t *testing.T, w *wire, a, b *Tester) {
		expect(t, a, there, Works, 100*time.Millisecond)
		for _, c := range []struct {
			sent uint16
			want uint32
		}{{0, AllLabels}, {291, 291}, {7, 7}, {4095, AllLabels}} {
			was := a.Last(there)
			w.mu.Lock()
			w.last = c.sent
			w.mu.Unlock()
			if was != c.want {
				expect(t, a, there, Works, 6*time.Second)
			}
			if got := a.Last(there); got != c.want {
				t.Errorf("a reply with %d: the last label is %d, want %d", c.sent, got, c.want)
			}
		}
		must.Equal(t, AllLabels, a.Last(here))
	})
}

func TestALinkThatNeverWorkedFails(t *testing.T) {
	onWire(t, loseAll, func(t *testing.T, w *wire, a, _ *Tester) {
		expect(t, a, there, Fails, 2*time.Second)
		w.lose(nil)
		expect(t, a, there, Works, 3*time.Second)
	})
}

func TestSetKeepsTheStateOfATargetThatDoesNotChange(t *testing.T) {
	onWire(t, nil, func(t *testing.T, _ *wire, a, _ *Tester) {
		expect(t, a, there, Works, 100*time.Millisecond)
		for _, c := range []struct {
			name    string
			targets map[netip.Addr]Target
			want    State
		}{
			{"the same target", map[netip.Addr]Target{there: {Source: here, Ifindex: 1}}, Works},
			{"a target of which earlier tests do not count", map[netip.Addr]Target{there: {Source: here, Ifindex: 1, Since: time.Now()}}, Unknown},
			{"no target", nil, Unknown},
			{"the target again", map[netip.Addr]Target{there: {Source: here, Ifindex: 1}}, Unknown},
		} {
			a.Set(c.targets, map[netip.Addr]int{here: 1}, nil)
			if got := a.State(there); got != c.want {
				t.Errorf("after Set with %s the state is %d, want %d", c.name, got, c.want)
			}
		}
	})
}

func TestSettleWaitsForTheFirstTest(t *testing.T) {
	onWire(t, nil, func(t *testing.T, _ *wire, a, _ *Tester) {
		if a.Settle(time.Hour); a.State(there) != Works {
			t.Errorf("after Settle the state is %d, want %d", a.State(there), Works)
		}
	})
	onWire(t, loseAll, func(t *testing.T, _ *wire, a, _ *Tester) {
		began := time.Now()
		if a.Settle(100 * time.Millisecond); time.Since(began) != 100*time.Millisecond {
			t.Errorf("Settle waited %v for a reply that does not arrive, want 100ms", time.Since(began))
		}
	})
}

// A socket fails when its device goes down or is deleted.
func TestABrokenSocketIsReplaced(t *testing.T) {
	onWire(t, nil, func(t *testing.T, w *wire, a, _ *Tester) {
		expect(t, a, there, Works, 100*time.Millisecond)
		w.mu.Lock()
		broken := w.ends[1]
		delete(w.ends, 1)
		w.mu.Unlock()
		close(broken.failed)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := w.ends[1]; got == nil || got == broken {
			t.Error("the tester did not open a new socket")
		}
	})
}

func TestALostFrameChangesNothing(t *testing.T) {
	n := 0
	everyThird := func([]byte) bool { n++; return n%3 == 1 }
	onWire(t, everyThird, func(t *testing.T, _ *wire, a, _ *Tester) {
		expect(t, a, there, Works, time.Second)
		select {
		case <-a.Changed():
			t.Errorf("the state became %d", a.State(there))
		case <-time.After(time.Minute):
		}
	})
}

func TestNetworksAreAnnounced(t *testing.T) {
	onWire(t, nil, func(t *testing.T, w *wire, _, _ *Tester) {
		time.Sleep(11 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		n := 0
		for _, from := range w.seen {
			if from == Label(7, here) {
				n++
			}
		}
		if n < 2 {
			t.Errorf("network 7 was announced %d times in 11 s, want at least 2", n)
		}
	})
}

// A new network is announced at once, to all nodes of the link. So no packet to it is lost in a
// switch that does not flood. All networks are announced again when a device comes back, and
// every minute.
func TestANewNetworkIsAnnouncedToAllAtOnce(t *testing.T) {
	onWire(t, nil, func(t *testing.T, w *wire, a, _ *Tester) {
		var seen []model.MAC
		w.lose(func(f []byte) bool {
			if m, to, from, ok := parse(f); ok && m.kind == announcement && to == (model.MAC{255, 255, 255, 255, 255, 255}) {
				seen = append(seen, from)
			}
			return false
		})
		announced := func(what string, want ...uint32) {
			t.Helper()
			w.mu.Lock()
			defer w.mu.Unlock()
			var labels []model.MAC
			for _, network := range want {
				labels = append(labels, Label(network, here))
			}
			if !slices.Equal(seen, labels) {
				t.Errorf("%s: the labels %v are announced, want %v", what, seen, labels)
			}
			seen = nil
		}
		set := func(networks ...uint32) {
			a.Set(map[netip.Addr]Target{there: {Source: here, Ifindex: 1}}, map[netip.Addr]int{here: 1}, networks)
		}
		set(7, 9)
		announced("network 9 is new", 9)
		set(7, 9)
		announced("nothing is new")
		set(9)
		set(7, 9)
		announced("network 7 is back", 7)
		w.mu.Lock()
		broken := w.ends[1]
		w.mu.Unlock()
		close(broken.failed)
		time.Sleep(reopen + tick)
		synctest.Wait()
		announced("the device is back", 7, 9)
		time.Sleep(refresh)
		announced("after a minute", 7, 9)
	})
}

func TestAReplyToNoRequestIsIgnored(t *testing.T) {
	onWire(t, loseAll, func(t *testing.T, w *wire, a, _ *Tester) {
		time.Sleep(tick)
		synctest.Wait()
		w.ends[1].frames <- message{kind: reply, number: 12345}.frame(Label(0, here), Label(0, there))
		synctest.Wait()
		must.Equal(t, Unknown, a.State(there))
	})
}
