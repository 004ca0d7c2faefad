package experiment

import (
	"context"
	"errors"

	"windtunnel/lab/sample"
)

// blockRun runs the trials of one block. A trial that did not succeed is attempted again after
// all others of its block, when the machine may be in another state. With a matrix several
// trials run at the same time, which have no host in common.
type blockRun struct {
	experiment *Experiment
	history    *history
	queue      []queued
	busy       map[string]bool // hosts
	running    int
	begun      int // number of the run's trials that have begun
	total      int // number of the run's trials
	ended      chan ending
}

// ending is a finished attempt.
type ending struct {
	queued
	progress Progress
	sample   sample.Sample
	err      error
}

// errExited means that a callback ended the attempt's goroutine by runtime.Goexit, as FailNow of a test does.
var errExited = errors.New("the goroutine of the attempt ended before the attempt did")

// block runs the trials of one block. total is the number of the run's trials.
func (e *Experiment) block(ctx context.Context, h *history, queue []queued, total int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &blockRun{experiment: e, history: h, queue: queue, busy: map[string]bool{}, total: total, ended: make(chan ending)}
	if len(queue) > 0 {
		w.begun = queue[0].number - 1
	}
	var failed error
	for {
		for ctx.Err() == nil && w.start(ctx) {
		}
		if w.running == 0 {
			break
		}
		if err := w.finish(ctx, <-w.ended); err != nil && failed == nil {
			failed = err
			cancel(err) // the other trials end early
		}
	}
	if failed == nil && len(w.queue) > 0 {
		return context.Cause(ctx)
	}
	return failed
}

// start begins the next trial whose hosts are free. It returns false if there is none, or if as
// many trials run as the plan allows: one without a matrix. With a matrix it looks at the trials
// of about two rounds: the order stays the random one, and a long queue costs no time.
func (w *blockRun) start(ctx context.Context) bool {
	concurrent, ahead := 1, 1
	if m := w.experiment.Plan.Matrix; m != nil {
		concurrent, ahead = m.Concurrent(), len(m.Hosts)
	}
	if w.running >= concurrent {
		return false
	}
	w.dropDone()
	for i := range min(len(w.queue), ahead) {
		q := w.queue[i]
		if pair := w.experiment.hosts(q); w.busy[pair.From] || w.busy[pair.To] {
			continue
		}
		copy(w.queue[1:i+1], w.queue[:i])
		w.queue = w.queue[1:]
		w.begin(ctx, q)
		return true
	}
	return false
}

// dropDone drops the next trials that are done: the run has begun to adjust figures, so an
// earlier attempt counts.
func (w *blockRun) dropDone() {
	for len(w.queue) > 0 && w.history.done[w.queue[0].Trial] {
		if w.queue[0].attempt == 1 {
			w.begun++
		}
		w.queue = w.queue[1:]
	}
}

// begin starts an attempt, which sends its end to w.ended.
func (w *blockRun) begin(ctx context.Context, q queued) {
	e, pair := w.experiment, w.experiment.hosts(q)
	w.busy[pair.From], w.busy[pair.To] = true, true
	w.running++
	if q.attempt == 1 {
		w.begun++
		q.number = w.begun
	}
	planned := e.Plan.Trials
	if e.Plan.Matrix == nil {
		planned = max(planned, e.Plan.Stop.MaxTrials)
	}
	p := Progress{Number: q.number, Total: w.total, Attempt: q.attempt, Attempts: q.attempts}
	if e.suspect(pair) || w.history.extra(planned) >= e.Plan.Repeats(planned) {
		p.Attempts = q.attempt
	}
	end := ending{q, p, e.begin(w.history, q, p), errExited}
	go func() {
		defer func() { w.ended <- end }()
		end.err = e.perform(ctx, q, p, &end.sample)
	}()
}

// finish records an attempt. A trial that must be repeated goes to the end of the queue.
func (w *blockRun) finish(ctx context.Context, end ending) error {
	pair := w.experiment.hosts(end.queued)
	delete(w.busy, pair.From)
	delete(w.busy, pair.To)
	w.running--
	again, err := w.experiment.end(ctx, w.history, end.queued, end.progress, &end.sample, end.err)
	if err != nil {
		return err
	}
	w.experiment.observe(pair, &end.sample)
	if again {
		end.attempt++
		w.queue = append(w.queue, end.queued)
	}
	return nil
}
