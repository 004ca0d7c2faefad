package experiment

import (
	"context"
	"slices"
	"sync"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// startApart is the time that one more client takes to start if all clients share
// one CPU. 64 clients began within 0.96 s on a busy machine. 16 clients sometimes needed more than 0.4 s.
const startApart = 30 * time.Millisecond

// timing returns the scenario's timing. Its cool-down includes the time between
// the start of the first pair and that of the last.
func (t *toolRun) timing() suite.Timing {
	timing := t.bench.scenario.Timing
	timing.Cooldown += time.Duration(len(t.bench.Pairs)-1) * startApart
	return timing
}

// begin starts the last process of every pair, and returns when the traffic of all pairs
// flows. All start in parallel, but that of the node itself starts after those in VMs: on an
// emulated CPU a program takes seconds to start, and the node's traffic would end first.
func (t *toolRun) begin(ctx context.Context) (time.Time, error) {
	began, errs := make([]time.Time, len(t.runs)), make([]error, len(t.runs))
	for _, r := range t.runs {
		t.note(r, r.plan[len(r.plan)-1])
	}
	for _, afterVMs := range []bool{false, true} {
		var starting sync.WaitGroup
		for i, r := range t.runs {
			if (t.bench.scenario.Endpoint.Kind == suite.VM && r.pair.Sender.Name == "") == afterVMs { // the pair is the node itself beside VMs
				starting.Go(func() { began[i], errs[i] = t.beginPair(ctx, r) })
			}
		}
		starting.Wait()
		for _, err := range errs {
			if err != nil {
				return time.Time{}, err
			}
		}
	}
	_, to := t.edges()
	return lastOf(began, t.timing().Total()-to)
}

// beginPair starts the last process of a pair and waits until its traffic flows.
// Most tools print a line at that time. For a tool that prints nothing, traffic
// flows as soon as the process runs.
func (t *toolRun) beginPair(ctx context.Context, r *pairRun) (time.Time, error) {
	last := r.plan[len(r.plan)-1]
	err := t.launch(ctx, r, last)
	if err == nil && last.Ready != nil {
		err = t.await(ctx, r, last)
	}
	return time.Now(), err
}

// lastOf returns the time at which the last pair's traffic began: the window's
// reference. It fails if the first pair's traffic would end within the window. after is the time for which a pair still sends
// after the window has ended, if its traffic began at the reference.
func lastOf(began []time.Time, after time.Duration) (time.Time, error) {
	first, last := slices.MinFunc(began, time.Time.Compare), slices.MaxFunc(began, time.Time.Compare)
	if apart := last.Sub(first); apart > after {
		return last, failed(sample.Invalid, "the clients of %d pairs began %v apart, but each sends only for %v after the meters' window, so the first would stop within the window; set a longer cooldown, or fewer pairs",
			len(began), apart.Round(time.Millisecond), after)
	}
	return last, nil
}
