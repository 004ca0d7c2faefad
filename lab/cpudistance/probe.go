// Package cpudistance measures how far two CPUs are from each other: the time that
// a cache line takes from one CPU to the other and back. It is some 50 ns where
// they share a cache, and several times that where they do not. On a virtual
// machine it changes when the host moves the machine's CPUs. The package also
// measures how fast each CPU copies memory.
package cpudistance

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Probe measures the distance of two CPUs, with one thread on each. Only one
// goroutine may call its methods at a time.
type Probe struct {
	line     *line
	begin    [2]bell // each ring starts one measurement
	ended    atomic.Bool
	done     chan struct{}
	replies  [2]reply
	readings int   // number of readings so far
	overhead int64 // of reading the clock, ns
}

// Reading is one measurement.
type Reading struct {
	Mono int64 // CLOCK_MONOTONIC at the end of the reading, ns
	// RoundTrip is the median time of a cache line to the other CPU and back,
	// in ns. It is 0, and the reading is empty, if a thread did not run within
	// patience.
	RoundTrip float64
	// Copy is the speed at which each CPU copies memory, in bytes per second,
	// in the order of Open's arguments; 0 in a reading without a copy.
	Copy [2]float64
}

// reply is a request to one thread, and the thread's result.
type reply struct {
	trips  []int64 // ns; the first thread's only
	copied time.Duration
	met    bool
	copies bool // the request includes a copy
}

const (
	// roundTrips of one reading take 2 to 15 µs.
	roundTrips = 40
	// copies is the number of readings with one copy of memory among them.
	copies = 5
	// patience is how long a thread waits for the other at the start of a
	// reading. The thread of a CPU in a long stretch of kernel work comes late.
	patience = 300 * time.Microsecond
)

// Open starts the threads on the CPUs with the numbers first and second. Where
// the system allows it they run at real-time priority, so that they run on a
// busy CPU too.
func Open(first, second int) (*Probe, error) {
	if first == second {
		return nil, fmt.Errorf("measure the distance of CPU %d from itself: two CPUs are needed", first)
	}
	p := &Probe{line: new(line), done: make(chan struct{}, 2), overhead: clockOverhead()}
	// A thread that wakes must not wait for another goroutine to yield.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	ready := make(chan error, 2)
	for i, cpu := range [...]int{first, second} {
		go p.thread(i, cpu, ready)
	}
	err := <-ready
	if second := <-ready; err == nil {
		err = second
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close ends the threads.
func (p *Probe) Close() {
	p.ended.Store(true)
	for i := range p.begin {
		p.begin[i].ring()
	}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - 2)
}

// Persist takes one reading, and retries if a thread did not run: softirqs of a
// loaded CPU can delay a thread for a millisecond.
func (p *Probe) Persist() (Reading, error) {
	const attempts, pause = 3, 2 * time.Millisecond
	for attempt := 1; ; attempt++ {
		r, err := p.Measure()
		if err != nil || r.RoundTrip > 0 || attempt == attempts {
			return r, err
		}
		time.Sleep(pause)
	}
}

// Measure takes one reading.
func (p *Probe) Measure() (Reading, error) {
	p.line.reset()
	copying := p.readings%copies == 0
	for i := range p.replies {
		p.replies[i] = reply{copies: copying}
	}
	// The caller may run on the first CPU, where the thread that it wakes
	// preempts it. So that thread wakes the other one.
	p.begin[0].ring()
	for range p.begin {
		<-p.done
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return Reading{}, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	r := Reading{Mono: now.Nano()}
	a, b := &p.replies[0], &p.replies[1]
	if !a.met || !b.met {
		return r, nil
	}
	slices.Sort(a.trips)
	r.RoundTrip = float64(max(a.trips[len(a.trips)/2]-p.overhead, 1))
	p.readings++
	for i := range p.replies {
		if copying {
			r.Copy[i] = copyBytes / p.replies[i].copied.Seconds()
		}
	}
	return r, nil
}

// thread stays bound to its CPU, so the OS thread never returns to the Go
// runtime.
func (p *Probe) thread(i, cpu int, ready chan<- error) {
	runtime.LockOSThread()
	if err := bind(cpu); err != nil {
		ready <- err
		return
	}
	memory := newBuffers()
	trips := make([]int64, roundTrips)
	ready <- nil
	for {
		p.begin[i].wait()
		if p.ended.Load() {
			return
		}
		r := &p.replies[i]
		if i == 0 {
			p.begin[1].ring()
			r.trips = trips
			r.met = p.line.lead(trips)
		} else {
			r.met = p.line.follow(roundTrips)
		}
		if r.met && r.copies {
			r.copied = memory.copy()
		}
		p.done <- struct{}{}
	}
}

// bind moves the calling thread to a CPU, at real-time priority if that is
// allowed.
func bind(cpu int) error {
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("measure the distance of CPU %d: bind a thread to it: %w", cpu, err)
	}
	realTime := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	_ = unix.SchedSetAttr(0, realTime, 0) // if it fails, readings on a busy CPU come late or not at all
	return nil
}
