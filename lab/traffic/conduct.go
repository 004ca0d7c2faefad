package traffic

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/suite"
)

// span has the conductor's measurements of the window.
type span struct {
	seconds float64
	cpu     CPU
	machine machineCounters // zero if the conductor does not read the machine
}

// conductor runs a crew through the phases of a run.
type conductor struct {
	crew   *crew
	timing suite.Timing
	// machine reads the machine's counters at the start and at the end of the window; nil if
	// they are not needed. On a busy machine this takes seconds, and the phases do not wait.
	machine func() (machineCounters, error)
	// started is called when every worker runs, before any traffic. The time counts from its
	// end; nil: from the release of the workers.
	started func() error
	// counted is called when the window is over; nil if nothing depends on it.
	counted func()
	// peer is closed when the window of the other end is over. Until then the traffic
	// continues. nil: the other end sends no message about it.
	peer  <-chan struct{}
	began edge
	ended edge
	reads sync.WaitGroup // of the machine
}

// edge has the time and the CPU time of the process at the start or at the end of the window. The
// conductor reads the counters of the workers at the same moment.
type edge struct {
	at      int64
	cpu     CPU
	machine machineCounters
	err     error         // of the reading of the machine
	read    chan struct{} // closed after this reading
}

func (c *conductor) readEdge(of func(*worker) *mark) edge {
	for _, w := range c.crew.workers {
		*of(w) = mark{w.tally.read(), now()}
	}
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return edge{at: now()} // cannot fail for RUSAGE_SELF
	}
	seconds := func(t unix.Timeval) float64 { return float64(t.Nano()) / 1e9 }
	return edge{at: now(), cpu: CPU{seconds(u.Utime), seconds(u.Stime)}}
}

// readMachine starts to read the machine's counters for an edge, after the reading for an
// earlier edge.
func (c *conductor) readMachine(e *edge, earlier <-chan struct{}) {
	if c.machine == nil {
		return
	}
	e.read = make(chan struct{})
	c.reads.Go(func() {
		defer close(e.read)
		if earlier != nil {
			<-earlier
		}
		e.machine, e.err = c.machine()
		e.machine.at = now()
	})
}

// run releases the workers and sets the phases at their times, until the traffic must stop. It
// ends earlier if stop is closed, or if every worker has ended.
func (c *conductor) run(stop <-chan struct{}) error {
	if c.started != nil {
		c.crew.release()
		c.crew.starting.Wait()
	}
	if c.timing.Warmup == 0 {
		c.enter(measuring) // before the first call, so that every byte counts
	}
	if c.started != nil {
		if err := c.started(); err != nil {
			return err
		}
	}
	start := time.Now()
	c.crew.release()
	end := int32(cooling)
	if c.timing.Cooldown == 0 {
		end = stopping // set before the next step, because a sender must not send in between
	}
	marks := []struct {
		after time.Duration
		phase int32
	}{
		{c.timing.Warmup, measuring},
		{c.timing.Warmup + c.timing.Duration, end},
	}
	defer c.enter(stopping)
	for _, m := range marks {
		if d := time.Until(start.Add(m.after)); d > 0 && !within(d, c.crew.done, stop) {
			return nil
		}
		c.enter(m.phase)
		start = start.Add(max(0, time.Since(start.Add(m.after)))) // a window that begins late has its full length
	}
	if end == cooling {
		c.cool(stop)
	}
	return nil
}

// cool waits until the windows of both ends are over, and then for the cool-down. Traffic must
// continue until then: a busy CPU can delay the window of an end by tenths of a second.
func (c *conductor) cool(stop <-chan struct{}) {
	if c.peer != nil {
		late := time.NewTimer(lateTimeout)
		defer late.Stop()
		select {
		case <-c.peer:
		case <-c.crew.done:
		case <-stop:
		case <-late.C:
		}
	}
	within(c.timing.Cooldown, c.crew.done, stop)
}

// enter sets the phase, and reads the process's clocks at the start and at the end of the
// window.
func (c *conductor) enter(phase int32) {
	if c.crew.stage.phase.Load() >= phase {
		return
	}
	c.crew.stage.phase.Store(phase)
	if phase == measuring {
		c.began = c.readEdge(func(w *worker) *mark { return &w.begin })
		c.readMachine(&c.began, nil)
	}
	if phase >= cooling && c.ended.at == 0 && c.began.at != 0 {
		c.ended = c.readEdge(func(w *worker) *mark { return &w.end })
		c.readMachine(&c.ended, c.began.read)
		if c.counted != nil {
			go c.counted()
		}
	}
}

// within waits until done or stop is closed, at most for d. It reports whether d has
// passed.
func within(d time.Duration, done, stop <-chan struct{}) (passed bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return false
	case <-stop:
		return false
	case <-timer.C:
		return true
	}
}

// window returns the measurements between the two edges.
func (c *conductor) window() (span, error) {
	if c.began.at == 0 || c.ended.at <= c.began.at {
		return span{}, fmt.Errorf("the run ended before its window began, %v after its start; nothing was measured", c.timing.Warmup)
	}
	c.reads.Wait()
	if err := errors.Join(c.began.err, c.ended.err); err != nil {
		return span{}, err
	}
	seconds := float64(c.ended.at-c.began.at) / 1e9
	return span{
		machine: c.ended.machine.since(c.began.machine, seconds),
		seconds: seconds,
		cpu:     CPU{c.ended.cpu.User - c.began.cpu.User, c.ended.cpu.System - c.began.cpu.System},
	}, nil
}

// fault returns the first error that ended a worker too early.
func (c *crew) fault() error {
	for _, w := range c.workers {
		if w.fatal != nil {
			return fmt.Errorf("stream %d (%s): %w", w.flow.Index, w.flow.Role, w.fatal)
		}
	}
	return nil
}

// epoch is the time at which the clock reads 0. Only differences are used.
var epoch = time.Now()

// now returns the nanoseconds since epoch by CLOCK_MONOTONIC. time.Since with a monotonic time needs one
// call of the vDSO and no allocation.
func now() int64 { return int64(time.Since(epoch)) }

// monotonicAtEpoch returns CLOCK_MONOTONIC at epoch, ns.
func monotonicAtEpoch() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	return t.Nano() - now(), nil
}

// stage has the current phase of a run, for all threads. It fills a whole cache line: every
// thread reads it after every call, and only the conductor writes it.
type stage struct {
	_     [64]byte
	phase atomic.Int32
	_     [60]byte
}

// The phases of a run, in order.
const (
	warming   int32 = iota // traffic that is not counted
	measuring              // the window
	cooling                // traffic continues, so that the peer's window ends under full load
	stopping               // senders end; receivers and responders continue until their peer has ended
	closing                // all end at once
)
