package direct

import (
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"windtunnel/internal/pause"
)

// Socket identifies a socket for tests and their replies: the packet socket of a device, or
// the ICMPv6 socket of an address.
type Socket struct {
	Ifindex int        // of the device; 0: an ICMPv6 socket
	Source  netip.Addr // of an ICMPv6 socket
}

// Listen opens a socket in the network namespace of the calling thread.
func Listen(s Socket) (net.PacketConn, error) {
	if s.Ifindex == 0 {
		return listenEcho(s.Source)
	}
	return listenFrames(s.Ifindex)
}

// Tester tests whether other nodes can be reached without a tunnel. On common links it sends
// frames to the labels of the nodes. To the locators of nodes it sends ICMPv6 echo requests.
// The eBPF program fabric_tc of the other node replies, even if no agent runs there.
type Tester struct {
	listen  func(Socket) (net.PacketConn, error)
	log     *slog.Logger
	changed chan struct{}
	due     chan struct{} // a request is due before the time that run waits for
	ended   chan struct{}
	once    sync.Once

	mu      sync.Mutex
	targets map[netip.Addr]*target
	own     map[netip.Addr]int // address of this node → ifindex; 0: the address is in the locator
	conns   map[Socket]net.PacketConn
	labels  []uint32 // networks whose labels are announced, sorted
}

// Target says how to test an address of another node: an underlay address over a common
// link, or the address in a locator over the routes of the underlay.
type Target struct {
	Source  netip.Addr // address of this node on the link, or in this node's locator
	Ifindex int        // device of the link; 0: the address is in a locator
	Since   time.Time  // results of earlier tests do not count
}

// socket returns the socket of an address of this node.
func socket(source netip.Addr, ifindex int) Socket {
	if ifindex == 0 {
		return Socket{Source: source}
	}
	return Socket{Ifindex: ifindex}
}

// State is the result of the tests of a target.
type State int

const (
	Unknown State = iota // the first test has not ended yet
	Works                // test frames reach the node, and its replies arrive
	Bridges              // the same, and the node restores bridged frames
	Fails                // no test has succeeded
	Stopped              // a test has succeeded before, but the last test failed
)

// target is a Target and the progress of its tests.
type target struct {
	Target
	state   State
	last    uint32        // highest network whose label the node receives
	number  uint64        // number of the last request
	missed  int           // requests in a row without a reply
	wait    time.Duration // wait after the last failed test
	next    time.Time     // time of the next request
	pending bool          // the last request has no reply yet
	worked  bool          // at least one request got a reply
}

// Times of the tests.
const (
	firstWait = 50 * time.Millisecond // wait for the first reply; it doubles after each missed reply
	attempts  = 5                     // a test fails after this number of requests without a reply
	period    = 5 * time.Second       // interval between two tests of a target
	again     = time.Second           // wait after a failed test; it doubles up to period
	refresh   = time.Minute           // interval between two announcements to all nodes of a link
	reopen    = time.Second           // interval at which missing sockets are opened
	tick      = 25 * time.Millisecond // least time between two looks for due requests, and longest time to send one
)

// NewTester starts a tester without targets. listen opens a socket, as Listen does.
func NewTester(listen func(Socket) (net.PacketConn, error), log *slog.Logger) *Tester {
	t := &Tester{
		listen: listen, log: log, changed: make(chan struct{}, 1), due: make(chan struct{}, 1), ended: make(chan struct{}),
		targets: map[netip.Addr]*target{}, own: map[netip.Addr]int{}, conns: map[Socket]net.PacketConn{},
	}
	go t.run()
	return t
}

// Changed receives a value after a target's state has changed.
func (t *Tester) Changed() <-chan struct{} { return t.changed }

// Set replaces the targets. own maps each address of this node to an ifindex; 0: the address
// is in this node's locator. networks, sorted, are the networks whose labels are announced. A
// target that does not change keeps its state.
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
			t.targets[a] = &target{Target: want, last: AllLabels}
		}
	}
	var added []uint32
	for _, network := range networks {
		if _, has := slices.BinarySearch(t.labels, network); !has {
			added = append(added, network)
		}
	}
	t.own, t.labels = own, slices.Clone(networks)
	t.announceToAll(added)
	t.open()
	now := time.Now()
	for a, x := range t.targets {
		t.test(a, x, now)
	}
	pause.Wake(t.due)
}

// Settle waits until no target's state is Unknown, for at most the time longest.
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

// open opens the sockets in use and closes the others.
func (t *Tester) open() {
	select {
	case <-t.ended: // run may be in its last round
		return
	default:
	}
	used := map[Socket]bool{}
	for a, ifindex := range t.own {
		used[socket(a, ifindex)] = true
	}
	for s, c := range t.conns {
		if !used[s] {
			c.Close()
			delete(t.conns, s)
		}
	}
	for s := range used {
		if t.conns[s] != nil {
			continue
		}
		c, err := t.listen(s)
		if err != nil {
			t.log.Debug("cannot open a socket for the tests of direct", "ifindex", s.Ifindex, "source", s.Source, "error", err)
			continue
		}
		t.conns[s] = c
		t.announceOn(s.Ifindex, t.labels)
		go t.receive(s, c)
	}
}

// State returns the state of a target. It is Unknown for other addresses.
func (t *Tester) State(a netip.Addr) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.targets[a]; x != nil {
		return x.state
	}
	return Unknown
}

// Last returns the highest network whose label a target receives. Frames with the label of a
// higher network may not reach it. It is AllLabels for other addresses.
func (t *Tester) Last(a netip.Addr) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.targets[a]; x != nil {
		return x.last
	}
	return AllLabels
}

// Close ends the tests.
func (t *Tester) Close() {
	t.once.Do(func() { close(t.ended) })
	t.mu.Lock()
	defer t.mu.Unlock()
	for s, c := range t.conns {
		c.Close()
		delete(t.conns, s)
	}
}

func (t *Tester) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var announced, opened time.Time
	refreshed := time.Now()
	for {
		select {
		case <-t.ended:
			return
		case <-t.due:
		case <-timer.C:
		}
		t.mu.Lock()
		now := time.Now()
		if now.Sub(opened) >= reopen {
			opened = now
			t.open()
		}
		next := opened.Add(reopen)
		for a, x := range t.targets {
			t.test(a, x, now)
			if x.next.Before(next) {
				next = x.next
			}
		}
		if now.Sub(announced) >= period {
			announced = now
			t.announce()
		}
		if now.Sub(refreshed) >= refresh {
			refreshed = now
			t.announceToAll(t.labels)
		}
		t.mu.Unlock()
		timer.Reset(max(time.Until(next), tick))
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
		t.become(x, map[bool]State{false: Fails, true: Stopped}[x.worked], x.last)
		x.missed, x.pending = 0, false
		x.wait = min(max(2*x.wait, again), period)
		x.next = now.Add(x.wait)
		return
	}
	x.number, x.pending = rand.Uint64(), true
	x.next = now.Add(firstWait << x.missed)
	if x.Ifindex == 0 {
		t.send(Socket{Source: x.Source}, echoRequest(x.number), &net.IPAddr{IP: a.AsSlice()})
		return
	}
	t.sendFrame(x.Ifindex, message{kind: request, number: x.number}.frame(Label(0, a), Label(0, x.Source)))
}

func (t *Tester) become(x *target, s State, last uint32) {
	if x.state == s && x.last == last {
		return
	}
	x.state, x.last = s, last
	pause.Wake(t.changed)
}

func (t *Tester) sendFrame(ifindex int, frame []byte) {
	t.send(Socket{Ifindex: ifindex}, frame, nil)
}

func (t *Tester) send(s Socket, b []byte, to net.Addr) {
	if c := t.conns[s]; c != nil {
		c.SetWriteDeadline(time.Now().Add(tick)) // a device that cannot send must not block the agent
		c.WriteTo(b, to)                         // ignore errors: a test sends several requests
	}
}

// announceToAll sends a broadcast frame from the label of each network on each link. From
// it all switches of the link learn the port of the label.
func (t *Tester) announceToAll(networks []uint32) {
	for s := range t.conns {
		t.announceOn(s.Ifindex, networks)
	}
}

// announceOn sends these broadcast frames on one link. ifindex 0 is the socket of the locator, which has no labels.
func (t *Tester) announceOn(ifindex int, networks []uint32) {
	for own, on := range t.own {
		if on != ifindex || ifindex == 0 {
			continue
		}
		for _, network := range networks {
			t.sendFrame(ifindex, message{kind: announcement}.frame(broadcast, Label(network, own)))
		}
	}
}

// announce sends a frame from each network's label to a random node on each link, even if this
// node sends no other frames. The switches on the way learn the label again. Broadcasts every 5 s
// would be too many in a large fleet.
func (t *Tester) announce() {
	to := map[int]netip.Addr{}
	for a, x := range t.targets { // Go iterates in random order
		to[x.Ifindex] = a
	}
	for own, ifindex := range t.own {
		if _, has := to[ifindex]; !has || ifindex == 0 {
			continue
		}
		for _, network := range t.labels {
			t.sendFrame(ifindex, message{kind: announcement}.frame(Label(0, to[ifindex]), Label(network, own)))
		}
	}
}

// receive handles the packets of a socket until the socket fails. A packet socket fails when
// its device goes down or is deleted. Then run opens a new socket.
func (t *Tester) receive(s Socket, c net.PacketConn) {
	b := make([]byte, 2048)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.conns[s] == c {
				c.Close()
				delete(t.conns, s)
			}
			return
		}
		if s.Ifindex == 0 {
			if a, number, ok := parseEcho(b[:n], from); ok {
				t.handle(s.Ifindex, number, s.Source, a, Works, AllLabels)
			}
		} else if m, to, from, ok := parse(b[:n]); ok && m.kind == reply {
			self, isLabel := nodeOf(to)
			other, known := nodeOf(from)
			if isLabel && known {
				t.handle(s.Ifindex, m.number, self, other, map[bool]State{false: Works, true: Bridges}[m.bridges], m.last)
			}
		}
	}
}

// handle records the reply of another node to a test. self is the address of this node to
// which the reply came, state the state that the reply proves. last is the highest network
// whose label the other node receives.
func (t *Tester) handle(ifindex int, number uint64, self, other netip.Addr, state State, last uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own, known := t.own[self]; !known || own != ifindex {
		return
	}
	x := t.targets[other]
	if x == nil || x.Ifindex != ifindex || !x.pending || x.number != number {
		return
	}
	x.pending, x.missed, x.wait, x.worked = false, 0, 0, true
	x.next = time.Now().Add(period + rand.N(period/10))
	t.become(x, state, last)
}
