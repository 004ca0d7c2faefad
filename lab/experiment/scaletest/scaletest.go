// Package scaletest measures between many simulated hosts. The scheduler, the store, and the
// client and protocol of the agents are the real ones. The hosts are in this process,
// send no traffic and return computed figures.
package scaletest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"windtunnel/lab/experiment"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/testbedtest"
)

// Options of Measure.
type Options struct {
	Hosts    int
	Pairs    string // as in suite.NewMatrix
	Parallel int    // maximum number of trials at the same time
	Trials   int    // number of blocks
	Timing   suite.Timing
	Store    string // path of the store's file
	// Rate returns the payload between two hosts, bit/s; nil: the same for all.
	Rate func(from, to string) float64
	// Stored is called after each stored sample, with the number of samples so far; may
	// be nil. It may let hosts vanish.
	Stored func(n int, f *testbedtest.Fleet)
}

// Outcome describes what happened.
type Outcome struct {
	Run       string // ID of the run in the store
	Most      int    // largest number of trials in which a host was at the same time
	AtOnce    int    // largest number of trials at the same time
	Samples   int
	Connected time.Duration // time to connect to the hosts
}

// Host returns the name of a host by its number, from 0.
func Host(i int) string { return fmt.Sprintf("h%04d", i) }

// Measure runs a stream between the pairs of hosts. If ctx ends, it returns the outcome so
// far with the cause.
func Measure(ctx context.Context, o Options) (out Outcome, err error) {
	var names []string
	for i := range o.Hosts {
		names = append(names, Host(i))
	}
	plan := &suite.Plan{Suite: "scale", Title: "Simulated hosts", Nodes: 2, Trials: o.Trials, Scenarios: []suite.Scenario{stream(o.Timing)}}
	if plan.Matrix, err = suite.NewMatrix(names, o.Pairs, o.Parallel); err != nil {
		return out, err
	}
	store, err := results.Open(o.Store, results.Options{})
	if err != nil {
		return out, err
	}
	defer store.Close()
	began := time.Now()
	fleet, err := testbedtest.NewFleet(names)
	if err != nil {
		return out, err
	}
	defer fleet.Close()
	out.Connected = time.Since(began)
	fleet.Rate = o.Rate
	run := sample.Run{ID: "scale", Suite: plan.Suite, Title: plan.Title, Started: time.Now(), Seed: 1, Status: sample.Running}
	if err := store.CreateRun(run, *plan); err != nil {
		return out, err
	}
	r := &recorder{store: store, run: run.ID, fleet: fleet, stored: o.Stored}
	e := &experiment.Experiment{
		Plan: plan, Seed: run.Seed, Executor: fleet, ID: "scale", Self: "windtunnel", Attempts: 3, Recorder: r, Observer: r, Grace: time.Second,
	}
	err = e.Run(ctx)
	run.Finished, run.Status = time.Now(), sample.Complete
	if updated := store.UpdateRun(run); err == nil {
		err = updated
	}
	out.Run, out.Most, out.Samples, out.AtOnce = run.ID, fleet.Most(), r.samples, r.atOnce
	return out, err
}

// stream is an unlimited TCP stream of the built-in generator.
func stream(timing suite.Timing) suite.Scenario {
	return suite.Scenario{
		ID: "raw/one", Title: "raw: one stream", System: "raw", Placement: suite.TwoNodes, Pairs: 1, Tool: "builtin",
		Workload: suite.Workload{Name: "one", Kind: suite.TCPStream, Direction: suite.Forward, Streams: 1, Buffer: 128 << 10, IPVersion: 4},
		Fabric:   suite.Fabric{Name: "wire", Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1},
		Timing:   timing,
	}
}

// recorder stores the samples and counts the trials.
type recorder struct {
	store  *results.Store
	run    string
	fleet  *testbedtest.Fleet
	stored func(int, *testbedtest.Fleet)

	mu                       sync.Mutex
	samples, running, atOnce int
}

// Record implements experiment.Recorder.
func (r *recorder) Record(s sample.Sample) error {
	if _, err := r.store.AppendSample(r.run, s); err != nil {
		return err
	}
	r.samples++
	if r.stored != nil {
		r.stored(r.samples, r.fleet)
	}
	return nil
}

// Began implements experiment.Observer.
func (r *recorder) Began(experiment.Trial, experiment.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running++
	r.atOnce = max(r.atOnce, r.running)
}

// Ended implements experiment.Observer.
func (r *recorder) Ended(sample.Sample, experiment.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
}

// Up implements experiment.Observer.
func (*recorder) Up(*suite.Scenario, *experiment.Bench) {}

// Moved implements experiment.Observer.
func (*recorder) Moved(experiment.Trial, sample.Point) {}
