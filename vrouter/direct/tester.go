package direct

import (
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/mdlayher/packet"

	"windtunnel/vrouter/model"
)

// Listen opens a packet socket for test frames on a device, in the network namespace of
// the calling thread.
func Listen(ifindex int) (net.PacketConn, error) {
	i, err := net.InterfaceByIndex(ifindex)
	if err != nil {
		return nil, err
	}
	return packet.Listen(i, packet.Raw, EtherType, nil)
}

// Tester tests which nodes frames with labels reach. The other node's eBPF program
// fabric_tc answers, so no agent need run there.
type Tester struct {
	listen  func(ifindex int) (net.PacketConn, error)
	log     *slog.Logger
	changed chan struct{}
	ended   chan struct{}
	once    sync.Once

	mu      sync.Mutex
	targets map[netip.Addr]*target
	own     map[netip.Addr]int // ifindex of the device of each own underlay address
	conns   map[int]net.PacketConn
	labels  []uint32 // networks to announce
}

// Target is another node's underlay address that may be on a link of this node.
type Target struct {
	Source  netip.Addr // own underlay address on the link
	Ifindex int        // device of the link
}

// State is the result of the tests of a target.
type State int

const (
	Unknown State = iota // the first test has not ended
	Works                // frames reach the node and come back
	Fails                // they never did
	Stopped              // they did, and do no longer
)

// target is a Target and its tests.
type target struct {
	Target
	state   State
	number  uint64    // of the last request
	missed  int       // requests in a row without a reply
	next    time.Time // of the next request
	pending bool      // the last request has no reply yet
	worked  bool      // a request had a reply
}

// Times of the tests.
const (
	firstWait = 50 * time.Millisecond // for a reply; doubles with each missed one
	attempts  = 5                     // requests without a reply until a target fails
	period    = 5 * time.Second       // between tests of a target
	again     = time.Second           // after a failed test
	reopen    = time.Second           // after a socket failed
	tick      = 25 * time.Millisecond
)

// NewTester starts a tester without targets. listen opens a packet socket for EtherType
// on a device.
func NewTester(listen func(ifindex int) (net.PacketConn, error), log *slog.Logger) *Tester {
	t := &Tester{
		listen: listen, log: log, changed: make(chan struct{}, 1), ended: make(chan struct{}),
		targets: map[netip.Addr]*target{}, own: map[netip.Addr]int{}, conns: map[int]net.PacketConn{},
	}
	go t.run()
	return t
}

// Changed receives a value after a target's state has changed.
func (t *Tester) Changed() <-chan struct{} { return t.changed }

// Set replaces the targets, the node's own underlay addresses with their devices, and
// the networks whose labels are announced. States of targets that stay are kept.
func (t *Tester) Set(targets map[netip.Addr]Target, own map[netip.Addr]int, networks []uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.targets {
		if _, stays := targets[a]; !stays {
			delete(t.targets, a)
		}
	}
	for a, want := range targets {
		if has := t.targets[a]; has == nil || has.Target != want {
			t.targets[a] = &target{Target: want}
		}
	}
	t.own, t.labels = own, networks
	t.open()
	now := time.Now()
	for a, x := range t.targets {
		t.test(a, x, now)
	}
}

// Settle waits until no target's state is Unknown, but not longer than a time.
func (t *Tester) Settle(longest time.Duration) {
	for end := time.Now().Add(longest); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if !t.hasUnknown() {
			return
		}
	}
}

func (t *Tester) hasUnknown() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.targets {
		if x.state == Unknown {
			return true
		}
	}
	return false
}

// open opens the sockets of the devices in use and closes the others.
func (t *Tester) open() {
	used := map[int]bool{}
	for _, ifindex := range t.own {
		used[ifindex] = true
	}
	for ifindex, c := range t.conns {
		if !used[ifindex] {
			c.Close()
			delete(t.conns, ifindex)
		}
	}
	for ifindex := range used {
		if t.conns[ifindex] != nil {
			continue
		}
		c, err := t.listen(ifindex)
		if err != nil {
			t.log.Debug("cannot test a link for direct", "ifindex", ifindex, "error", err)
			continue
		}
		t.conns[ifindex] = c
		go t.receive(ifindex, c)
	}
}

// State returns the state of a target; Unknown for other addresses.
func (t *Tester) State(a netip.Addr) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.targets[a]; x != nil {
		return x.state
	}
	return Unknown
}

// Close ends the tests.
func (t *Tester) Close() {
	t.once.Do(func() { close(t.ended) })
	t.mu.Lock()
	defer t.mu.Unlock()
	for ifindex, c := range t.conns {
		c.Close()
		delete(t.conns, ifindex)
	}
}

func (t *Tester) run() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var announced, opened time.Time
	for {
		select {
		case <-t.ended:
			return
		case now := <-ticker.C:
			t.mu.Lock()
			if now.Sub(opened) >= reopen {
				opened = now
				t.open()
			}
			for a, x := range t.targets {
				t.test(a, x, now)
			}
			if now.Sub(announced) >= period {
				announced = now
				t.announce()
			}
			t.mu.Unlock()
		}
	}
}

// test sends a request to a target if one is due.
func (t *Tester) test(a netip.Addr, x *target, now time.Time) {
	if now.Before(x.next) {
		return
	}
	if x.pending {
		x.missed++
	}
	if x.missed >= attempts {
		t.become(x, map[bool]State{false: Fails, true: Stopped}[x.worked])
		x.missed, x.pending = 0, false
		x.next = now.Add(again)
		return
	}
	x.number, x.pending = rand.Uint64(), true
	x.next = now.Add(firstWait << x.missed)
	t.send(x.Ifindex, message{request, x.number}.frame(Label(0, a), Label(0, x.Source)))
}

func (t *Tester) become(x *target, s State) {
	if x.state == s {
		return
	}
	x.state = s
	select {
	case t.changed <- struct{}{}:
	default: // the reader has not taken the last one yet
	}
}

func (t *Tester) send(ifindex int, frame []byte) {
	if c := t.conns[ifindex]; c != nil {
		c.SetWriteDeadline(time.Now().Add(tick))                // a paused device must not stop the agent
		c.WriteTo(frame, &packet.Addr{HardwareAddr: frame[:6]}) // an error is a lost frame: the test is repeated
	}
}

// announce sends a frame from each network's label to one node of each link, chosen at
// random. So the switches between know where the labels are, also if this node sends
// nothing.
func (t *Tester) announce() {
	to := map[int]netip.Addr{}
	for a, x := range t.targets { // in random order
		to[x.Ifindex] = a
	}
	for own, ifindex := range t.own {
		if _, has := to[ifindex]; !has {
			continue
		}
		for _, network := range t.labels {
			t.send(ifindex, message{kind: announcement}.frame(Label(0, to[ifindex]), Label(network, own)))
		}
	}
}

// receive handles the frames of a device until its socket fails, as when the device is
// down or deleted. Then run opens another one.
func (t *Tester) receive(ifindex int, c net.PacketConn) {
	b := make([]byte, 2048)
	for {
		n, _, err := c.ReadFrom(b)
		if err != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.conns[ifindex] == c {
				c.Close()
				delete(t.conns, ifindex)
			}
			return
		}
		if m, to, from, ok := parse(b[:n]); ok {
			t.handle(ifindex, m, to, from)
		}
	}
}

func (t *Tester) handle(ifindex int, m message, to, from model.MAC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	here, isLabel := nodeOf(to)
	there, known := nodeOf(from)
	if !isLabel || !known || t.own[here] != ifindex {
		return
	}
	x := t.targets[there]
	if x == nil || x.Ifindex != ifindex {
		return
	}
	if m.kind != reply || !x.pending || x.number != m.number {
		return
	}
	x.pending, x.missed, x.worked = false, 0, true
	x.next = time.Now().Add(period + rand.N(period/10))
	t.become(x, Works)
}
