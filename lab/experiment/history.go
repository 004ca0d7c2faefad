package experiment

import (
	"maps"
	"slices"

	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
)

// history is the samples of a run so far, and counts of them.
type history struct {
	samples []sample.Sample // empty in a run with a matrix, because there are too many
	tried   map[Trial]int   // the number of the next attempt
	done    map[Trial]bool  // no further attempt is needed
	gated   map[Trial]bool  // the last attempt failed a gate
	valid   map[string]int  // by scenario: trials whose figures count
	invalid map[string]int  // by scenario: trials whose last attempt failed a gate
	repeats map[int]int     // by block: samples of repeats, without the profiler
	firsts  map[int]int     // by block: samples of first attempts, without the profiler
	lean    bool            // keep no samples
}

// newHistory counts the samples. If lean is true, the history does not keep them.
func newHistory(samples []sample.Sample, lean bool) *history {
	h := &history{tried: map[Trial]int{}, done: map[Trial]bool{}, gated: map[Trial]bool{}, valid: map[string]int{}, invalid: map[string]int{}, repeats: map[int]int{}, firsts: map[int]int{}, lean: lean}
	for _, s := range samples {
		h.add(s)
	}
	return h
}

func (h *history) add(s sample.Sample) {
	if !h.lean {
		h.samples = append(h.samples, s)
	}
	if !s.Profiled && s.Attempt > 0 {
		h.repeats[s.Block]++
	} else if !s.Profiled {
		h.firsts[s.Block]++
	}
	t := Trial{s.Scenario, s.Block, s.Profiled}
	h.tried[t] = max(h.tried[t], s.Attempt+1)
	h.gate(t, s.OK() && len(s.Gates) > 0)
	if s.Settled() {
		h.done[t] = true
		if h.lean {
			delete(h.tried, t) // no further attempt follows
		}
		if s.OK() {
			h.valid[s.Scenario]++
		}
	}
}

// gate records whether the last attempt at a trial failed a gate.
func (h *history) gate(t Trial, gated bool) {
	switch was := h.gated[t]; {
	case gated && !was:
		h.gated[t] = true
		h.invalid[t.Scenario]++
	case was && !gated:
		delete(h.gated, t)
		h.invalid[t.Scenario]--
	}
}

// forget removes the trials of the blocks before this one, which no longer matter in a
// run with a matrix.
func (h *history) forget(block int) {
	maps.DeleteFunc(h.tried, func(t Trial, _ int) bool { return t.Block < block })
	maps.DeleteFunc(h.done, func(t Trial, _ bool) bool { return t.Block < block })
	maps.DeleteFunc(h.gated, func(t Trial, _ bool) bool { return t.Block < block })
}

// forgiven returns the history without the gates that do not apply to adjusted
// figures.
func (h *history) forgiven() *history {
	for i := range h.samples {
		condition.Forgive(&h.samples[i])
	}
	return newHistory(h.samples, false)
}

// A run whose newest trials mostly fail would last for hours, even if most of its trials before
// were good.
const (
	newest       = 20 // number of the latest trials that unsettled checks
	newestFailed = 15 // the run is unsettled if so many of them failed
)

// unsettled reports whether the machine changes its state too often: because of that, more than
// half of the trials so far have failed, or newestFailed of the newest. It returns false if the
// run has fewer trials than least.
func (h *history) unsettled(least int) bool {
	all, failed, lately := 0, 0, 0
	for i := range slices.Backward(h.samples) {
		s := &h.samples[i]
		if !s.OK() || s.Profiled {
			continue
		}
		if all++; slices.ContainsFunc(s.Gates, condition.Adjustable) {
			failed++
		}
		if all == newest {
			lately = failed
		}
	}
	return all >= least && (2*failed > all || lately >= newestFailed)
}

// anyCounts reports whether some trial's figures count.
func (h *history) anyCounts() bool {
	return len(h.valid) > 0
}

// extra counts the repeats, and the trials in blocks that replace lost ones. blocks
// is the number of planned blocks.
func (h *history) extra(blocks int) (n int) {
	for _, repeats := range h.repeats {
		n += repeats
	}
	for block, firsts := range h.firsts {
		if block >= blocks {
			n += firsts
		}
	}
	return n
}

// hopelessAfter is the number of blocks after which a scenario that never passed
// its gates is no longer repeated.
const hopelessAfter = 3

// hopeless reports whether a scenario's trials are no longer repeated.
func (h *history) hopeless(scenario string) bool {
	return h.valid[scenario] == 0 && h.invalid[scenario] >= hopelessAfter
}

// lost returns the lost trials of the blocks before this one. A trial is lost if its last attempt
// failed a gate or ran at another CPU distance than the run's. Trials of hopeless scenarios do not
// count.
func (h *history) lost(block int, choice condition.Choice) []Trial {
	lost := map[Trial]bool{}
	for t, gated := range h.gated {
		if gated && !h.hopeless(t.Scenario) {
			lost[t] = true
		}
	}
	if choice != condition.Any {
		_, parts, shown := condition.Split(h.samples, choice)
		for _, s := range slices.Concat(slices.Delete(parts, shown, shown+1)...) {
			lost[Trial{s.Scenario, s.Block, s.Profiled}] = true
		}
	}
	maps.DeleteFunc(lost, func(t Trial, _ bool) bool { return t.Profiled || t.Block >= block })
	return slices.Collect(maps.Keys(lost))
}
