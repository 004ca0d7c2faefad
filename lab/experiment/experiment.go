// Package experiment runs a plan: it brings testbeds up, puts systems in,
// proves connectivity, runs the trials in random order within blocks, and
// hands every sample on. It is the only room that knows time and order.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

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
	// Done holds the trials that an earlier part of the run has finished.
	Done map[Trial]bool
	// Tried is the number of attempts that earlier parts of the run have made.
	Tried map[Trial]int
	// Attempts at a trial that fails in a way that a repeat may mend; ≥ 1.
	Attempts int
	Recorder Recorder
	Observer Observer
	// Grace is how long after its planned end a tool may still be busy with
	// its results before it counts as hung; 8 s where 0.
	Grace time.Duration
}

// Trial is one scenario in one block.
type Trial struct {
	Scenario string
	Block    int
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
	// Began a trial; number of total trials that this run will do.
	Began(t Trial, attempt, number, total int)
	// Moved: the trial's traffic at this moment.
	Moved(t Trial, p sample.Point)
	// Ended with a sample or a failure.
	Ended(s sample.Sample, number, total int)
}

// Order returns the order of the scenarios in a block: the same for the same
// seed, whatever was run before.
func Order(seed uint64, block, scenarios int) []int {
	return rand.New(rand.NewPCG(seed, uint64(block))).Perm(scenarios)
}

// Run runs what is left of the plan. Failed scenarios are recorded and do not
// stop it. It returns the context's cause when the person stopped it; all that
// was measured is then recorded.
func (e *Experiment) Run(ctx context.Context) error {
	total := e.left()
	number := 0
	for block := range e.Plan.Trials {
		for position, index := range Order(e.Seed, block, len(e.Plan.Scenarios)) {
			sc := &e.Plan.Scenarios[index]
			t := Trial{sc.ID, block}
			if e.Skipped[sc.ID] != "" || e.Done[t] {
				continue
			}
			number++
			if err := e.trial(ctx, sc, t, position, number, total); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Experiment) left() int {
	n := 0
	for _, sc := range e.Plan.Scenarios {
		if e.Skipped[sc.ID] != "" {
			continue
		}
		for block := range e.Plan.Trials {
			if !e.Done[Trial{sc.ID, block}] {
				n++
			}
		}
	}
	return n
}

// trial runs one trial until it yields figures or no further attempt can help,
// and records every attempt.
func (e *Experiment) trial(ctx context.Context, sc *suite.Scenario, t Trial, position, number, total int) error {
	first := e.Tried[t]
	for attempt := first; attempt < first+max(e.Attempts, 1); attempt++ {
		e.Observer.Began(t, attempt, number, total)
		s := sample.Sample{Scenario: sc.ID, Block: t.Block, Position: position, Attempt: attempt, Started: time.Now()}
		err := e.measure(ctx, sc, t, &s, attempt == first+max(e.Attempts, 1)-1)
		s.Took = time.Since(s.Started)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			s.Failure = failure(err)
		}
		if err := e.Recorder.Record(s); err != nil {
			return fmt.Errorf("record trial %d of %s: %w", t.Block+1, sc.ID, err)
		}
		e.Observer.Ended(s, number, total)
		if s.OK() || !s.Failure.Retryable() {
			return nil
		}
	}
	return nil
}

// measure brings everything up, runs the traffic once, and takes everything
// down again, however far it came.
func (e *Experiment) measure(ctx context.Context, sc *suite.Scenario, t Trial, s *sample.Sample, last bool) (err error) {
	b, err := NewBench(ctx, e.Executor, e.ID, sc, e.Plan.Nodes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Down(context.WithoutCancel(ctx))) }()
	e.Observer.Up(sc, b)
	if err := b.Prove(ctx, sc.Workload.IPVersion); err != nil {
		return err
	}
	return b.run(ctx, &tooling{
		bench: b, scenario: sc, self: e.Self, sample: s, grace: e.Grace, last: last,
		moved: func(p sample.Point) { e.Observer.Moved(t, p) },
	})
}

// failure turns an error into a typed failure; an error without a type of its
// own came from building the testbed.
func failure(err error) *sample.Failure {
	var f *sample.Failure
	if errors.As(err, &f) {
		return &sample.Failure{Kind: f.Kind, Message: err.Error()}
	}
	return &sample.Failure{Kind: sample.SetupFailed, Message: err.Error()}
}

func failed(kind sample.FailureKind, format string, args ...any) error {
	return &sample.Failure{Kind: kind, Message: fmt.Errorf(format, args...).Error()}
}
