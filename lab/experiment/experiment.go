// Package experiment runs a plan: it brings testbeds up, attaches systems, proves
// connectivity, runs the trials in random order within blocks, and records every
// sample. It is the only package that knows time and order.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// Experiment runs one plan.
type Experiment struct {
	Plan     *suite.Plan
	Seed     uint64 // of the order within blocks
	Executor testbed.Executor
	ID       string            // part of the testbeds' names
	Self     string            // path of the windtunnel program on the nodes
	Skipped  map[string]string // scenario id → why it cannot run here
	// History is the samples of earlier parts of the run, in order.
	History []sample.Sample
	// Attempts is the maximum number of attempts at a trial; ≥ 1.
	Attempts int
	// Imprecise reports whether the samples so far miss the plan's precision. It
	// is called after each block beyond the plan's trials, if the plan has a
	// precision.
	Imprecise func(samples []sample.Sample) bool
	// Lenient lets trials count that fail a gate. The gate becomes a flag.
	Lenient bool
	// Profiling adds trials with CPU profiles.
	Profiling Profiling
	Recorder  Recorder
	Observer  Observer
	// Grace is the time between a tool's planned end and the moment at which it
	// counts as hung; 0 means 8 s.
	Grace time.Duration

	FineIdle bool // how the meters read idle time; see meter.FineIdle
	// Distance is the CPU distance to measure at.
	Distance condition.Choice
	// Adjust lets trials count whatever the distance of the CPUs and the steal;
	// the report adjusts their figures. A run at Auto distance begins to adjust
	// where most trials fail for these, and calls Adjusting.
	Adjust    bool
	Adjusting func() error

	conditions conditions
	failures   map[string]int // by host of the plan's matrix: failed trials since the last success

	// try makes one attempt at a trial and fills the sample; nil: measure does this. last
	// reports that no further attempt can follow.
	try func(ctx context.Context, sc *suite.Scenario, t Trial, last bool, s *sample.Sample) error
}

// Profiling is the rate and number of CPU profiles. The zero value takes none.
type Profiling struct {
	Rate   int // samples a second on each CPU
	Blocks int // number of first blocks with one more trial of every scenario, with the profiler
}

// Trial identifies a trial: one scenario in one block, with or without the profiler. Each
// attempt at it makes a sample.
type Trial struct {
	Scenario string
	Block    int
	Profiled bool
}

// Recorder stores samples. Record returns when the sample is stored.
type Recorder interface {
	Record(s sample.Sample) error
}

// Observer follows a run's progress. Its methods must return quickly.
type Observer interface {
	// Up is called when a testbed with its system is ready.
	Up(sc *suite.Scenario, b *Bench)
	// Began is called before an attempt at a trial.
	Began(t Trial, p Progress)
	// Moved is called with the trial's current traffic.
	Moved(t Trial, p sample.Point)
	// Ended is called after an attempt, with its sample.
	Ended(s sample.Sample, p Progress)
}

// Progress is the position of an attempt within a run.
type Progress struct {
	Number, Total     int  // of this run's trials, from 1
	Attempt, Attempts int  // this attempt, from 1, and the maximum
	Repeats           bool // another attempt follows this one
}

// ErrNoneCounts ends a run after its first block if none of that block's trials
// counts. On such a machine further blocks most likely fail too.
var ErrNoneCounts = errors.New("no trial of the first block counts")

// Run runs the plan's remaining trials. A failed trial is recorded and does not end
// the run. If no trial counts after a whole block, Run returns ErrNoneCounts. If
// the context ends, it returns the context's cause; all finished attempts are
// recorded.
func (e *Experiment) Run(ctx context.Context) error {
	h := newHistory(e.History, e.Plan.Matrix != nil)
	if e.Plan.Matrix != nil {
		e.Distance = condition.Off // each pair of hosts has another distance
	}
	e.conditions.Choice, e.conditions.Adjust = e.Distance, e.Adjust
	e.conditions.Resume(e.History)
	defer e.conditions.close()
	started := time.Now()
	number := 0
	for block := 0; e.goesOn(h, block, time.Since(started)); block++ {
		queue := e.queue(h, block, number)
		number += len(queue)
		if e.Plan.Matrix != nil {
			h.forget(block)
		}
		if err := e.block(ctx, h, queue, number+e.later(h, block)); err != nil {
			return err
		}
		if number == 0 || h.anyCounts() || !e.goesOn(h, block+1, time.Since(started)) {
			continue
		}
		if err := e.mayAdjust(h, 1); err != nil {
			return err
		}
		if !h.anyCounts() {
			return ErrNoneCounts
		}
	}
	return nil
}

// begin makes the sample of an attempt.
func (e *Experiment) begin(h *history, q queued, p Progress) sample.Sample {
	e.Observer.Began(q.Trial, p)
	return sample.Sample{Scenario: q.Scenario, Block: q.Block, Position: q.position, Attempt: h.tried[q.Trial], Profiled: q.Profiled, Started: time.Now()}
}

// perform makes the attempt and fills the sample. Several goroutines may call it.
func (e *Experiment) perform(ctx context.Context, q queued, p Progress, s *sample.Sample) error {
	try := e.try
	if try == nil {
		try = e.measure
	}
	err := try(ctx, e.scenario(q), q.Trial, p.Attempt >= p.Attempts, s)
	s.Took = time.Since(s.Started)
	return err
}

// end records the sample of an attempt. err is the result of perform. again reports
// whether another attempt must follow.
func (e *Experiment) end(ctx context.Context, h *history, q queued, p Progress, s *sample.Sample, err error) (again bool, _ error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		s.Failure = failure(err)
	}
	if e.conditions.Adjust {
		condition.Forgive(s)
	}
	if err := e.Recorder.Record(*s); err != nil {
		return false, fmt.Errorf("record trial %d of %s: %w", q.Block+1, q.Scenario, err)
	}
	h.add(*s)
	if err := e.mayAdjust(h, 6); err != nil {
		return false, err
	}
	if e.conditions.Adjust {
		condition.Forgive(s)
	}
	p.Repeats = !s.Settled() && p.Attempt < p.Attempts
	e.Observer.Ended(*s, p)
	return p.Repeats, nil
}

// mayAdjust starts to adjust figures if the machine changes its state too often.
// It does nothing while the run has fewer trials than least.
func (e *Experiment) mayAdjust(h *history, least int) error {
	if e.conditions.Adjust || e.Adjusting == nil || (e.Distance != "" && e.Distance != condition.Auto) || !h.unsettled(least) {
		return nil
	}
	e.conditions.Adjust = true
	*h = *h.forgiven()
	return e.Adjusting()
}

// measure brings up the bench, runs the traffic once, and removes the bench, also
// after an error.
func (e *Experiment) measure(ctx context.Context, sc *suite.Scenario, t Trial, last bool, s *sample.Sample) (err error) {
	b, err := NewBench(ctx, e.Executor, e.ID, sc, e.Plan.Nodes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Down(context.WithoutCancel(ctx))) }()
	ctx, stop := b.watched(ctx)
	defer stop()
	e.Observer.Up(sc, b)
	if err := b.Prove(ctx, sc.Workload.IPVersion); err != nil {
		return b.withOutput(ctx, err)
	}
	run := &toolRun{
		bench: b, self: e.Self, sample: s, grace: e.Grace, conditions: &e.conditions, last: last, fineIdle: e.FineIdle,
		moved: func(p sample.Point) { e.Observer.Moved(t, p) },
	}
	if t.Profiled {
		run.profileRate = e.Profiling.Rate
	}
	if err := b.run(ctx, run); err != nil {
		return b.withOutput(ctx, err)
	}
	if e.Lenient {
		warnOnly(s)
	}
	return nil
}

// failure converts an error to a typed failure. An error without a type comes from
// building the testbed.
func failure(err error) *sample.Failure {
	var lost *agent.Lost
	var f *sample.Failure
	switch {
	case errors.As(err, &lost): // every later call to the agent returns this error
		return &sample.Failure{Kind: sample.AgentLost, Message: lost.Error()}
	case errors.As(err, &f):
		return &sample.Failure{Kind: f.Kind, Message: err.Error()}
	}
	return &sample.Failure{Kind: sample.SetupFailed, Message: err.Error()}
}

// failed returns a failure of a kind. If an argument is the loss of an agent, the
// kind is AgentLost.
func failed(kind sample.FailureKind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if isLost(err) {
		kind = sample.AgentLost
	}
	return &sample.Failure{Kind: kind, Message: err.Error()}
}

func isLost(err error) bool { return errors.As(err, new(*agent.Lost)) }
