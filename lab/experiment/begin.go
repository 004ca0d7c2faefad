package experiment

import (
	"context"
	"slices"
	"sync"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// startApart is how long a CPU that all clients share takes to start one more:
// 64 began 0.96 s apart on a busy machine.
const startApart = 20 * time.Millisecond

// timing is the scenario's, with a cool-down that also makes up for the time by
// which the first pair begins before the last.
func (t *tooling) timing() suite.Timing {
	timing := t.scenario.Timing
	timing.Cooldown += time.Duration(len(t.bench.Pairs)-1) * startApart
	return timing
}

// begin starts the last process of every pair, all at once, and returns when
// the traffic of the last one flows.
func (t *tooling) begin(ctx context.Context) (time.Time, error) {
	began, errs := make([]time.Time, len(t.runs)), make([]error, len(t.runs))
	var starting sync.WaitGroup
	for i, r := range t.runs {
		t.note(r, r.plan[len(r.plan)-1])
		starting.Go(func() { began[i], errs[i] = t.beginPair(ctx, r) })
	}
	starting.Wait()
	for _, err := range errs {
		if err != nil {
			return time.Time{}, err
		}
	}
	return lastOf(began, t.timing().Cooldown)
}

// beginPair returns when a pair's traffic flows: as soon as its last process
// runs, or, for a tool that says so, when it says that it has begun.
func (t *tooling) beginPair(ctx context.Context, r *pairRun) (time.Time, error) {
	last := r.plan[len(r.plan)-1]
	err := t.launch(ctx, r, last)
	if err == nil && last.Ready != nil {
		err = t.await(ctx, r, last)
	}
	return time.Now(), err
}

// lastOf returns the last of the moments at which the pairs' traffic began. The
// window is counted from it, and the first pair must last until the window's
// end: its lead is made up for by the cool-down.
func lastOf(began []time.Time, cooldown time.Duration) (time.Time, error) {
	first, last := slices.MinFunc(began, time.Time.Compare), slices.MaxFunc(began, time.Time.Compare)
	if apart := last.Sub(first); apart > cooldown+margin {
		return last, failed(sample.Invalid, "the clients of %d pairs began %v apart, and the cool-down is %v: the first would end within the window; set a longer cooldown, or fewer pairs",
			len(began), apart.Round(time.Millisecond), cooldown)
	}
	return last, nil
}
