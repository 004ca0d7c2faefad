package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// notes says what a reader must know beside the figures: the suite's own notes
// first, then what this run lacks.
func (b *builder) notes(r *Report) []string {
	notes := slices.Clone(b.plan.Notes)
	notes = append(notes, b.statusNotes()...)
	notes = append(notes, fewTrials(r)...)
	for i := range b.plan.Scenarios {
		id := b.plan.Scenarios[i].ID
		notes = append(notes, b.cells[id].failureNotes(id)...)
	}
	return append(notes, b.doubt...)
}

func (b *builder) statusNotes() []string {
	switch b.run.Status {
	case sample.Running:
		return []string{"The run has not finished: it is still going or was killed. What it measured so far is here."}
	case sample.Stopped:
		return []string{"The run was interrupted: blocks may lack scenarios."}
	}
	return nil
}

// fewTrials names the scenarios whose intervals are mere extremes.
func fewTrials(r *Report) []string {
	need := stats.MinimumTrials(stats.Level)
	var ids []string
	fewest, measured := need, 0
	for i := range r.Scenarios {
		n := r.Scenarios[i].Trials
		if n == 0 {
			continue
		}
		measured++
		if n < need {
			ids = append(ids, r.Scenarios[i].ID)
			fewest = min(fewest, n)
		}
	}
	who := list(ids) + " have"
	switch {
	case len(ids) == 0:
		return nil
	case len(ids) == measured:
		who = "all scenarios have"
	case len(ids) == 1:
		who = ids[0] + " has"
	}
	return []string{fmt.Sprintf("A 95 %% interval needs %d trials; %s fewer (%d), so brackets there hold the lowest and highest trial.", need, who, fewest)}
}

// failureNotes counts what did not go well in one scenario, by kind.
func (c *cell) failureNotes(id string) []string {
	var notes []string
	failed, repeated := make(map[sample.FailureKind]int), make(map[sample.FailureKind]int)
	for _, s := range c.all {
		if s.OK() {
			continue
		}
		if slices.Contains(c.last, s) {
			failed[s.Failure.Kind]++
		} else {
			repeated[s.Failure.Kind]++
		}
	}
	if len(failed) > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d of %s yielded no figures (%s).", id, len(c.last)-len(c.ok), count(len(c.last), "trial"), kinds(failed)))
	}
	if len(repeated) > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s repeated after a failure (%s).", id, were(repeated), kinds(repeated)))
	}
	if len(c.dirty) > 0 {
		notes = append(notes, fmt.Sprintf("%s: values that are not finite numbers are left out (%s).", id, joinMetrics(c.dirty)))
	}
	return notes
}

func were(counts map[sample.FailureKind]int) string {
	total := 0
	for _, n := range counts {
		total += n
	}
	if total == 1 {
		return "1 trial was"
	}
	return fmt.Sprintf("%d trials were", total)
}

func kinds(counts map[sample.FailureKind]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[kind]; n > 1 {
			parts = append(parts, fmt.Sprintf("%s %d×", kind, n))
		} else {
			parts = append(parts, string(kind))
		}
	}
	return strings.Join(parts, ", ")
}

func joinMetrics(metrics []sample.Metric) string {
	var names []string
	for _, m := range metrics {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}
