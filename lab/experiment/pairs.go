package experiment

import (
	"context"
	"errors"
	"math/rand/v2"

	"windtunnel/lab/probe"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// pairing runs the trials of one block of a matrix. Two trials at the same time have no
// host in common.
type pairing struct {
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

// blockOfPairs is block for a plan with a matrix.
func (e *Experiment) blockOfPairs(ctx context.Context, h *history, queue []queued, total int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &pairing{experiment: e, history: h, queue: queue, busy: map[string]bool{}, total: total, ended: make(chan ending)}
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

// start begins the next trial whose hosts are free. It returns false if there is none, or
// if as many trials run as the matrix allows. It looks at the trials of about two rounds:
// the order stays the random one, and a long queue costs no time.
func (w *pairing) start(ctx context.Context) bool {
	m := w.experiment.Plan.Matrix
	if w.running >= m.Concurrent() {
		return false
	}
	for i := range min(len(w.queue), len(m.Hosts)) {
		q := w.queue[i]
		pair := m.Pair(q.pair)
		if w.busy[pair.From] || w.busy[pair.To] {
			continue
		}
		copy(w.queue[1:i+1], w.queue[:i])
		w.queue = w.queue[1:]
		w.begin(ctx, q, pair)
		return true
	}
	return false
}

// begin starts an attempt, which sends its end to w.ended.
func (w *pairing) begin(ctx context.Context, q queued, pair suite.HostPair) {
	e := w.experiment
	w.busy[pair.From], w.busy[pair.To] = true, true
	w.running++
	if q.attempt == 1 {
		w.begun++
		q.number = w.begun
	}
	p := Progress{Number: q.number, Total: w.total, Attempt: q.attempt, Attempts: q.attempts}
	if blocks := e.Plan.Trials; e.suspect(pair) || w.history.extra(blocks) >= e.Plan.Repeats(blocks) {
		p.Attempts = q.attempt
	}
	s := e.begin(w.history, q, p)
	go func() {
		err := e.perform(ctx, q, p, &s)
		w.ended <- ending{q, p, s, err}
	}()
}

// finish records an attempt. A trial that must be repeated goes to the end of the queue.
func (w *pairing) finish(ctx context.Context, end ending) error {
	pair := w.experiment.Plan.Matrix.Pair(end.pair)
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

// suspectAfter is the number of a host's consecutive failures after which its trials are
// no longer repeated. A lost host costs many seconds in each attempt.
const suspectAfter = 3

// suspect reports whether trials between the hosts are not repeated.
func (e *Experiment) suspect(p suite.HostPair) bool {
	return e.failures[p.From] >= suspectAfter || e.failures[p.To] >= suspectAfter
}

// observe counts the failures of hosts. A partner of a lost host is no suspect for long,
// because its other trials succeed.
func (e *Experiment) observe(p suite.HostPair, s *sample.Sample) {
	if e.failures == nil {
		e.failures = map[string]int{}
	}
	for _, host := range []string{p.From, p.To} {
		switch {
		case s.OK():
			e.failures[host] = 0
		case s.Failure.Kind == sample.AgentLost, s.Failure.Kind == sample.SetupFailed, s.Failure.Kind == sample.NoConnectivity:
			e.failures[host]++
		}
	}
}

// rounds returns a block of a matrix: every scenario once between every pair of hosts. The
// order of the rounds is random. In a round the scenarios follow each other in random
// order, so that those of one pair are measured close to each other.
func (e *Experiment) rounds(block int) (list []entry) {
	rng := rand.New(rand.NewPCG(e.Seed, uint64(block)))
	rounds := e.Plan.Matrix.Rounds()
	for _, r := range rng.Perm(len(rounds)) {
		for _, sc := range rng.Perm(len(e.Plan.Scenarios)) {
			for _, p := range rng.Perm(len(rounds[r])) {
				list = append(list, entry{scenario: sc, pair: rounds[r][p]})
			}
		}
	}
	return list
}

// scenario returns the scenario of a trial, with its hosts.
func (e *Experiment) scenario(q queued) *suite.Scenario {
	if e.Plan.Matrix == nil {
		return &e.Plan.Scenarios[q.scenario]
	}
	sc := e.Plan.Scenarios[q.scenario].Between(e.Plan.Matrix.Pair(q.pair))
	return &sc
}

// executorOf returns the executor of a scenario's testbed.
func executorOf(x testbed.Executor, sc *suite.Scenario) (testbed.Executor, error) {
	if sc.Hosts == (suite.HostPair{}) {
		return x, nil
	}
	c, ok := x.(testbed.Chooser)
	if !ok {
		return nil, errors.New("the scenario runs between two named hosts, and the testbed is on one machine; give a hosts file with --testbed")
	}
	return c.Between(sc.Hosts.From, sc.Hosts.To)
}

// skipsOfPairs is Skips for a plan with a matrix. A scenario that cannot run between any
// pair has one entry, with the reason of the first pair.
func skipsOfPairs(plan *suite.Plan, x testbed.Executor, facts []*probe.Facts) map[string]string {
	skips, at := map[string]string{}, map[string]int{}
	for i, host := range plan.Matrix.Hosts {
		at[host] = i
	}
	for i := range plan.Scenarios {
		lacking := map[string]string{}
		first := ""
		for k := range plan.Matrix.Len() {
			sc := plan.Scenarios[i].Between(plan.Matrix.Pair(k))
			var machines []*probe.Facts
			for _, host := range []string{sc.Hosts.From, sc.Hosts.To} {
				if at[host] < len(facts) {
					machines = append(machines, facts[at[host]])
				}
			}
			if why := skipBetween(&sc, plan.Nodes, x, machines); why != "" {
				lacking[sc.ID] = why
				if first == "" {
					first = why
				}
			}
		}
		if len(lacking) == plan.Matrix.Len() {
			lacking = map[string]string{plan.Scenarios[i].ID: first}
		}
		for id, why := range lacking {
			skips[id] = why
		}
	}
	return skips
}

// skipBetween is skip for a scenario between two named hosts.
func skipBetween(sc *suite.Scenario, nodes int, x testbed.Executor, machines []*probe.Facts) string {
	if sc.Placement == suite.Colocated {
		return "both of its endpoints are on one node, so it does not run between hosts"
	}
	pair, err := executorOf(x, sc)
	if err != nil {
		return err.Error()
	}
	return skip(sc, nodes, pair, machines)
}
