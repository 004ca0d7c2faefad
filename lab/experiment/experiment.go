// Package experiment runs a plan: it brings testbeds up, puts systems in,
// proves connectivity, runs the trials in random order within blocks until
// enough is known, and hands every sample on. It is the only room that knows
// time and order.
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

// Experiment is a plan and what it needs to run.
type Experiment struct {
	Plan     *suite.Plan
	Seed     uint64 // of the order within blocks
	Executor testbed.Executor
	ID       string            // part of the testbeds' names
	Self     string            // path of the windtunnel program on the nodes
	Skipped  map[string]string // scenario id → why it cannot run here
	// History holds what earlier parts of the run have recorded, in order.
	History []sample.Sample
	// Attempts at a trial that fails, or fails a condition; ≥ 1.
	Attempts int
	// Imprecise says, of all samples so far, whether the plan's precision is
	// still to be reached. It is asked after each block from the plan's trials
	// on, where the plan has a precision.
	Imprecise func(samples []sample.Sample) bool
	// Watch is over all trials.
	Watch Watch
	// Lenient lets trials count that fail a condition; what failed becomes a flag.
	Lenient bool
	// Profiling takes CPU profiles in trials of their own.
	Profiling Profiling
	Recorder  Recorder
	Observer  Observer
	// Grace is how long after its planned end a tool may still be busy with
	// its results before it counts as hung; 8 s where 0.
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

	// try makes one attempt at a trial and fills the sample; measure where nil.
	try func(ctx context.Context, sc *suite.Scenario, t Trial, s *sample.Sample) error
}

// Profiling says when profiles are taken. The zero value takes none.
type Profiling struct {
	Rate   int // samples a second on each CPU
	Blocks int // in so many first blocks every scenario runs once more, with the profiler
}

// Trial is one scenario in one block; once more, beside the profiler.
type Trial struct {
	Scenario string
	Block    int
	Profiled bool
}

// Recorder keeps what was measured. Record returns only once the sample is
// safe.
type Recorder interface {
	Record(s sample.Sample) error
}

// Observer is told what happens. Its methods return quickly.
type Observer interface {
	// Up: a testbed with its system stands.
	Up(sc *suite.Scenario, b *Bench)
	// Began an attempt at a trial.
	Began(t Trial, p Progress)
	// Moved: the trial's traffic at this moment.
	Moved(t Trial, p sample.Point)
	// Ended an attempt with a sample or a failure.
	Ended(s sample.Sample, p Progress)
}

// Progress is how far a run has come, as far as that is known.
type Progress struct {
	Number, Total     int  // of this run's trials, from 1
	Attempt, Attempts int  // of this trial's attempts, from 1; Attempts at most
	Repeats           bool // another attempt follows this one
}

// ErrNoneCounts is why a run ends after its first block where none of that
// block's trials counts: the rest would most likely not either.
var ErrNoneCounts = errors.New("no trial of the first block counts")

// Run runs what is left of the plan. Failed scenarios are recorded and do not
// stop it, but where no trial of a whole block counts and none did before, the
// run ends with ErrNoneCounts. It returns the context's cause when the person
// stopped it; all that was measured is then recorded.
func (e *Experiment) Run(ctx context.Context) error {
	h := newHistory(e.History)
	e.conditions.choice, e.conditions.adjust = e.Distance, e.Adjust
	e.conditions.resumed(e.History)
	defer e.conditions.close()
	started := time.Now()
	number := 0
	for block := 0; e.goesOn(h, block, time.Since(started)); block++ {
		queue := e.queue(h, block, number)
		number += len(queue)
		if err := e.block(ctx, h, queue, number+e.later(h, block)); err != nil {
			return err
		}
		if number > 0 && !h.anyCounts() && e.goesOn(h, block+1, time.Since(started)) {
			return ErrNoneCounts
		}
	}
	return nil
}

// block runs the trials of one block. A trial that did not succeed is attempted
// again after all others of its block, when the machine may be in another state.
// total is the number of the run's trials.
func (e *Experiment) block(ctx context.Context, h *history, queue []queued, total int) error {
	planned := max(e.Plan.Trials, e.Plan.Stop.MaxTrials)
	for len(queue) > 0 {
		q := queue[0]
		queue = queue[1:]
		p := Progress{Number: q.number, Total: total, Attempt: q.attempt, Attempts: q.attempts}
		if h.extra(planned) >= e.Plan.Repeats(planned) {
			p.Attempts = q.attempt
		}
		again, err := e.attempt(ctx, h, q, p)
		if err != nil {
			return err
		}
		if again {
			q.attempt++
			queue = append(queue, q)
		}
	}
	return nil
}

// attempt attempts a trial once and records the sample. again reports whether
// another attempt must follow.
func (e *Experiment) attempt(ctx context.Context, h *history, q queued, p Progress) (again bool, err error) {
	sc := &e.Plan.Scenarios[q.scenario]
	e.Observer.Began(q.Trial, p)
	s := sample.Sample{Scenario: q.Scenario, Block: q.Block, Position: q.position, Attempt: h.tried[q.Trial], Profiled: q.Profiled, Started: time.Now()}
	try := e.try
	if try == nil {
		try = e.measure
	}
	err = try(ctx, sc, q.Trial, &s)
	s.Took = time.Since(s.Started)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		s.Failure = failure(err)
	}
	if e.conditions.adjust {
		condition.Forgive(&s)
	}
	if err := e.Recorder.Record(s); err != nil {
		return false, fmt.Errorf("record trial %d of %s: %w", q.Block+1, q.Scenario, err)
	}
	h.add(s)
	if err := e.mayAdjust(h); err != nil {
		return false, err
	}
	if e.conditions.adjust {
		condition.Forgive(&s)
	}
	p.Repeats = !settled(&s) && p.Attempt < p.Attempts
	e.Observer.Ended(s, p)
	return p.Repeats, nil
}

// mayAdjust begins to adjust where the machine keeps to no state.
func (e *Experiment) mayAdjust(h *history) error {
	if e.conditions.adjust || e.Adjusting == nil || (e.Distance != "" && e.Distance != condition.Auto) || !h.unsettled() {
		return nil
	}
	e.conditions.adjust = true
	*h = *h.forgiven()
	return e.Adjusting()
}

// measure brings everything up, runs the traffic once, and takes everything
// down again, however far it came.
func (e *Experiment) measure(ctx context.Context, sc *suite.Scenario, t Trial, s *sample.Sample) (err error) {
	b, err := NewBench(ctx, e.Executor, e.ID, sc, e.Plan.Nodes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Down(context.WithoutCancel(ctx))) }()
	ctx, stop := b.watched(ctx)
	defer stop()
	e.Observer.Up(sc, b)
	if err := b.Prove(ctx, sc.Workload.IPVersion); err != nil {
		return b.withLastWords(ctx, err)
	}
	if err := e.Watch.allow(ctx, b); err != nil {
		return err
	}
	run := &tooling{
		bench: b, scenario: sc, self: e.Self, sample: s, grace: e.Grace, watch: e.Watch, conditions: &e.conditions, last: s.Attempt+1 >= e.Attempts, fineIdle: e.FineIdle,
		moved: func(p sample.Point) { e.Observer.Moved(t, p) },
	}
	if t.Profiled {
		run.profileRate = e.Profiling.Rate
	}
	if err := b.run(ctx, run); err != nil {
		return b.withLastWords(ctx, err)
	}
	if e.Lenient {
		warnOnly(s)
	}
	return nil
}

// failure turns an error into a typed failure; an error without a type of its
// own came from building the testbed.
func failure(err error) *sample.Failure {
	var lost *agent.Lost
	var f *sample.Failure
	switch {
	case errors.As(err, &lost): // every call since then says so
		return &sample.Failure{Kind: sample.AgentLost, Message: lost.Error()}
	case errors.As(err, &f):
		return &sample.Failure{Kind: f.Kind, Message: err.Error()}
	}
	return &sample.Failure{Kind: sample.SetupFailed, Message: err.Error()}
}

// failed makes a typed failure. Where an agent was lost, that is the failure,
// whatever was attempted.
func failed(kind sample.FailureKind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if isLost(err) {
		kind = sample.AgentLost
	}
	return &sample.Failure{Kind: kind, Message: err.Error()}
}

func isLost(err error) bool { return errors.As(err, new(*agent.Lost)) }
