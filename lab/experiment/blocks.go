package experiment

import (
	"math/rand/v2"
	"slices"
	"time"

	"windtunnel/lab/condition"
	"windtunnel/lab/suite"
)

// entry is one trial of a block's schedule.
type entry struct {
	scenario int // index in the plan
	profiled bool
	pair     int // index in the plan's matrix
}

// order returns the order of a block's entries: the same for the same seed,
// whatever was run before.
func order(seed uint64, block, entries int) []int {
	return rand.New(rand.NewPCG(seed, uint64(block))).Perm(entries)
}

// schedule returns a block: every scenario once, in random order. In a run with
// profiles, the first blocks run every scenario a second time, with the profiler. Scenarios whose nodes are not
// pinned have no second time: a profile of a node's CPUs would include the other node's work.
func (e *Experiment) schedule(block int) []entry {
	if e.Plan.Matrix != nil {
		return e.rounds(block)
	}
	n := len(e.Plan.Scenarios)
	total := n
	if e.Profiling.Rate > 0 && block < e.Profiling.Blocks {
		total = 2 * n
	}
	var list []entry
	for _, i := range order(e.Seed, block, total) {
		if next := (entry{scenario: i % n, profiled: i >= n}); !next.profiled || !e.Plan.Scenarios[next.scenario].Fabric.Unpinned {
			list = append(list, next)
		}
	}
	return list
}

// goesOn reports whether the given block runs. The plan's blocks always run. Additional
// blocks replace lost trials. If the plan sets a precision, blocks run until the figures are that
// precise, or until the plan's maximum of trials or of time is reached.
func (e *Experiment) goesOn(h *history, block int, elapsed time.Duration) bool {
	p := e.Plan
	if block < p.Trials {
		return true
	}
	if p.Matrix != nil {
		return false // a further block of all pairs is too long for a few lost trials
	}
	if p.Stop.MaxTime > 0 && elapsed >= p.Stop.MaxTime {
		return false
	}
	if e.seeksPrecision(block) {
		return e.Imprecise(h.samples)
	}
	return block < p.Trials+p.Replacements(p.Trials) && h.extra(p.Trials) < p.Repeats(p.Trials) && len(e.owed(h, block)) > 0
}

// owed returns the scenarios that an additional block must run to replace lost trials.
//
// Scenarios that are compared with each other make a group. A comparison needs the trials of both
// scenarios in the same block. So for each block in which a group lost a trial, the whole group runs
// in one additional block. After these blocks, owed no longer returns the group's scenarios.
func (e *Experiment) owed(h *history, block int) map[string]bool {
	owed, lost := map[string]bool{}, h.lost(block, e.distance())
	for _, group := range e.Plan.Compared() {
		missing, replaced := map[int]bool{}, map[int]bool{}
		for _, t := range lost {
			if e.Skipped[t.Scenario] == "" && slices.Contains(group, t.Scenario) {
				missing[t.Block] = true
			}
		}
		for t := range h.tried {
			if t.Block >= e.Plan.Trials && t.Block < block && slices.Contains(group, t.Scenario) {
				replaced[t.Block] = true
			}
		}
		if len(missing) > len(replaced) {
			for _, id := range group {
				owed[id] = true
			}
		}
	}
	return owed
}

// replaces reports whether the purpose of a block is only to replace lost trials.
func (e *Experiment) replaces(block int) bool {
	return e.Plan.Matrix == nil && block >= e.Plan.Trials && !e.seeksPrecision(block)
}

// seeksPrecision reports whether an additional block runs until the figures have the precision that
// the plan sets.
func (e *Experiment) seeksPrecision(block int) bool {
	return e.Plan.Stop.Precision > 0 && block < e.Plan.Stop.MaxTrials && e.Imprecise != nil
}

// distance returns the CPU distance at which a trial must run to count. A run that
// adjusts its figures accepts any distance.
func (e *Experiment) distance() condition.Choice {
	if e.conditions.Adjust {
		return condition.Any
	}
	return e.Distance
}

// queued is a trial of a block that waits for its next attempt.
type queued struct {
	Trial
	scenario int // index in the plan
	pair     int // index in the plan's matrix
	position int // place in the block's order
	number   int // number among the run's trials, from 1
	attempt  int // from 1
	attempts int // maximum
}

// queue lists the trials of a block in their order. It omits trials of skipped scenarios and trials
// that are done. A block that only replaces lost trials has only the scenarios of owed. before is
// the number of the run's trials in earlier blocks.
func (e *Experiment) queue(h *history, block, before int) []queued {
	var list []queued
	var owed map[string]bool
	if e.replaces(block) {
		owed = e.owed(h, block)
	}
	for position, entry := range e.schedule(block) {
		id := e.Plan.Scenarios[entry.scenario].ID
		skipped := e.Skipped[id] != "" || owed != nil && !owed[id]
		if m := e.Plan.Matrix; m != nil {
			id = suite.PairID(id, m.Pair(entry.pair))
			skipped = skipped || e.Skipped[id] != ""
		}
		t := Trial{id, block, entry.profiled}
		if !skipped && !h.done[t] {
			q := queued{Trial: t, scenario: entry.scenario, pair: entry.pair, position: position, number: before + len(list) + 1, attempt: 1, attempts: max(e.Attempts, 1)}
			if h.hopeless(id) {
				q.attempts = 1
			}
			list = append(list, q)
		}
	}
	return list
}

// Remaining returns the number of the plan's trials that are not done: all without a History.
func (e *Experiment) Remaining() int {
	h := newHistory(e.History, e.Plan.Matrix != nil)
	left := e.later(h, -1)
	if e.Plan.Matrix != nil { // later does not look at the history
		for t := range h.done {
			if e.Skipped[t.Scenario] == "" {
				left--
			}
		}
	}
	return left
}

// later counts the remaining trials in the plan's blocks after this one.
func (e *Experiment) later(h *history, block int) int {
	if e.Plan.Matrix != nil {
		plan := *e.Plan
		plan.Skipped = e.Skipped
		return (plan.Trials - block - 1) * plan.Cells()
	}
	n := 0
	for b := block + 1; b < e.Plan.Trials; b++ {
		n += len(e.queue(h, b, 0))
	}
	return n
}
