// Package profile shows which functions use a node's CPU time. It samples the node's CPUs,
// finds the names of the functions of kernel, BPF programs and user programs, and assigns
// each stack to one category.
package profile

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/meter"
	"windtunnel/lab/profile/folded"
)

// Config selects the CPUs and the rate of the samples.
type Config struct {
	Node string
	CPUs []int // the node's own
	Rate int   // samples a second on each CPU; DefaultRate where 0
}

// DefaultRate is no multiple or divisor of the timer tick (100, 250, 300 or 1000 Hz), so
// that samples do not always, or never, hit the tick's work. At twice the rate a stream
// between two CPUs lost 5 % (docs/profiles.md).
const DefaultRate = 499

// maxRate limits the cost of the sampler.
const maxRate = 20_000

// maxSamples limits the memory: 32 bytes for each sample, plus the different chains.
const maxSamples = 16 << 20

// drainEvery is so short that most programs still run when their files are read.
const drainEvery = 250 * time.Millisecond

// Sampler samples until it is stopped. One goroutine works four times a second.
type Sampler struct {
	config    Config
	started   int64 // CLOCK_MONOTONIC, ns: sampling was on from here
	events    []*event
	samples   [][]sample // by event
	kept      int
	chains    map[string]int32
	chainList []string
	processes processes
	marker    *marker
	lost      []uint64 // by event
	throttled uint64
	warnings  []string

	stop chan struct{}
	done chan error
}

// sample is one sample of one CPU.
type sample struct {
	time  uint64 // CLOCK_MONOTONIC, ns
	pid   uint32
	chain int32 // index into chainList
	wire  bool  // the testbed's wire was at work
}

// Start begins to sample. If the kernel refuses, the error has the remedy. Call Stop or
// Abandon later.
func Start(c Config) (*Sampler, error) {
	if c.Rate == 0 {
		c.Rate = DefaultRate
	}
	if len(c.CPUs) == 0 {
		return nil, errors.New("take a CPU profile: no CPUs given; a node needs at least one of its own")
	}
	if c.Rate < 1 || c.Rate > maxRate {
		return nil, fmt.Errorf("take a CPU profile: a rate of %d Hz; it must lie between 1 and %d", c.Rate, maxRate)
	}
	s := &Sampler{config: c, samples: make([][]sample, len(c.CPUs)), lost: make([]uint64, len(c.CPUs)), chains: map[string]int32{}, processes: processes{},
		stop: make(chan struct{}), done: make(chan error, 1)}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("take a CPU profile of node %s: %w", c.Node, errors.Join(err, s.close()))
	}
	go func() { s.done <- s.collect() }()
	return s, nil
}

func (s *Sampler) open() error {
	for _, cpu := range s.config.CPUs {
		e, err := openEvent(cpu, s.config.Rate)
		if err != nil {
			return err
		}
		s.events = append(s.events, e)
	}
	var err error
	if s.marker, err = newMarker(s.events); err != nil {
		s.warnings = append(s.warnings, fmt.Sprintf("The wire's work cannot be separated from the node's: %v.", err))
	}
	for _, e := range s.events {
		if err := e.ioctl(unix.PERF_EVENT_IOC_ENABLE, "start"); err != nil {
			return err
		}
	}
	s.started, err = meter.Now()
	return err
}

// collect reads the rings until the sampler is stopped, and once after that.
func (s *Sampler) collect() error {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			var errs []error
			for _, e := range s.events {
				errs = append(errs, e.ioctl(unix.PERF_EVENT_IOC_DISABLE, "stop"))
			}
			return errors.Join(append(errs, s.drain())...)
		case <-tick.C:
			if err := s.drain(); err != nil {
				<-s.stop
				return err
			}
		}
	}
}

func (s *Sampler) drain() error {
	for i, e := range s.events {
		if err := e.drain(func(b []byte) error { return s.take(i, b) }); err != nil {
			return fmt.Errorf("read the samples of CPU %d: %w", e.cpu, err)
		}
	}
	return s.marker.drain()
}

// take stores the contents of one record.
func (s *Sampler) take(event int, b []byte) error {
	r, err := parseRecord(b)
	if err != nil {
		return err
	}
	switch r.kind {
	case unix.PERF_RECORD_SAMPLE:
		s.keep(event, &r)
	case unix.PERF_RECORD_LOST:
		s.lost[event] += r.count
	case unix.PERF_RECORD_THROTTLE:
		s.throttled++
	default:
		s.processes.note(&r)
	}
	return nil
}

func (s *Sampler) keep(event int, r *record) {
	if s.kept == maxSamples {
		s.lost[event]++
		return
	}
	s.kept++
	chain, ok := s.chains[string(r.chain)]
	if !ok {
		chain = int32(len(s.chainList))
		key := string(r.chain)
		s.chains[key] = chain
		s.chainList = append(s.chainList, key)
	}
	s.processes.meet(r.pid)
	s.samples[event] = append(s.samples[event], sample{time: r.time, pid: r.pid, chain: chain})
}

// Window is the meter's window, in nanoseconds of CLOCK_MONOTONIC.
type Window struct {
	From, To int64
	// Metered is the busy time by the meter, in seconds by CPU, with the fabric's work;
	// nil if it is not known. The profile then shows busy time without samples as
	// folded.Unseen and not as idle.
	Metered map[int]float64
}

// Cast assigns programs to roles. Other programs are foreign, except kernel threads.
type Cast struct {
	Tools     []int // processes of the traffic tool; their descendants count too
	Observers []int // agent and engine
}

// Stop ends the sampling and returns the profile of a window within the sampled time. It
// closes the sampler also if it returns an error.
func (s *Sampler) Stop(w Window, cast Cast) (*folded.Profile, error) {
	close(s.stop)
	err := <-s.done
	ended, clockErr := meter.Now()
	if err := errors.Join(err, clockErr, s.close()); err != nil {
		return nil, fmt.Errorf("end the CPU profile of node %s: %w", s.config.Node, err)
	}
	if w.From < s.started || w.To > ended || w.To <= w.From {
		return nil, fmt.Errorf("end the CPU profile of node %s: the window from %d to %d ns is not within the time that was sampled, %d to %d", s.config.Node, w.From, w.To, s.started, ended)
	}
	return s.profile(w, cast)
}

// Abandon ends sampling without a profile.
func (s *Sampler) Abandon() error {
	close(s.stop)
	return errors.Join(<-s.done, s.close())
}

func (s *Sampler) close() error {
	var errs []error
	for _, e := range s.events {
		errs = append(errs, errors.Join(unix.Munmap(e.memory), unix.Close(e.fd)))
	}
	s.events = nil
	return errors.Join(append(errs, s.marker.close())...)
}

// profile makes the profile of the samples in the window.
func (s *Sampler) profile(w Window, cast Cast) (*folded.Profile, error) {
	p := &folded.Profile{Node: s.config.Node, CPUs: slices.Clone(s.config.CPUs), Seconds: float64(w.To-w.From) / 1e9,
		Rate: float64(s.config.Rate), Clock: clockName, Throttled: s.throttled, Warnings: s.warnings}
	b, err := newBuilder(s, cast)
	if err != nil {
		return nil, err
	}
	for i, cpu := range s.config.CPUs {
		s.marker.mark(cpu, s.samples[i])
		sh, err := weigh(s.samples[i], w, s.config.Rate, s.lost[i])
		if err != nil {
			return nil, fmt.Errorf("profile CPU %d of node %s: %w", cpu, s.config.Node, err)
		}
		p.Lost += s.lost[i]
		p.Samples += uint64(sh.end - sh.first)
		busy := uint64(0)
		for j := sh.first; j < sh.end; j++ {
			if b.add(&s.samples[i][j], sh.each) != folded.Idle {
				busy += sh.each
			}
		}
		b.rest += sh.rest
		if metered, ok := w.Metered[cpu]; ok && metered*1e9 > float64(busy) {
			b.unseen += uint64(metered*1e9) - busy
		}
	}
	p.Stacks = b.stacks()
	p.Warnings = append(p.Warnings, b.warnings()...)
	return p, nil
}
