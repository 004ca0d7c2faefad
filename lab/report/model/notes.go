package model

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// notes says what a reader must know beside the figures: the suite's own notes
// first, then what this run lacks.
func (b *builder) notes(r *Report) []string {
	notes := slices.Clone(b.plan.Notes)
	if b.plan.Short {
		notes = append(notes, "This is the short form of the suite: fewer or shorter trials, and it may leave scenarios out.")
	}
	notes = append(notes, b.statusNotes()...)
	notes = append(notes, b.emulatedNotes(r)...)
	notes = append(notes, fewTrials(r)...)
	for i := range r.Scenarios {
		id := r.Scenarios[i].ID
		if dirty := b.cells[id].dirty; len(dirty) > 0 {
			notes = append(notes, fmt.Sprintf("%s: values that are not finite numbers are left out (%s).", id, strings.Trim(fmt.Sprint(dirty), "[]")))
		}
	}
	return append(notes, b.doubt...)
}

// ValidityLines states how many trials count, which planned trials are missing,
// whether the precision was reached, and what to do about rejected trials.
func (r *Report) ValidityLines() []string {
	if r.Validity.Attempts == 0 {
		return nil
	}
	lines := []string{r.Validity.Line()}
	var missing []string
	for i := range r.Scenarios {
		if n := r.Validity.Missing[r.Scenarios[i].ID]; n > 0 {
			missing = append(missing, fmt.Sprintf("%s %d", r.Scenarios[i].ID, n))
		}
	}
	if len(missing) > 0 {
		lines = append(lines, "Planned trials without figures that count: "+strings.Join(missing, ", ")+".")
	}
	lines = append(lines, r.Outcomes()...)
	if r.Precision != nil {
		lines = append(lines, r.Precision.Why)
	}
	return append(lines, r.Advice()...)
}

// HypothesisLines writes each hypothesis as "holds: the claim. The figures."
func (r *Report) HypothesisLines() []string {
	var lines []string
	for _, h := range r.Hypotheses {
		lines = append(lines, fmt.Sprintf("%s: %s. %s", h.Judgement, strings.TrimSuffix(h.Claim, "."), h.Why))
	}
	return lines
}

func (b *builder) statusNotes() []string {
	switch b.run.Status {
	case sample.Running:
		return []string{"The run has not finished. What it measured so far is here."}
	case sample.Stopped:
		return []string{"The run was interrupted: blocks may lack scenarios."}
	case sample.Empty:
		return []string{"The run ended, and no trial counts."}
	}
	return nil
}

// fewTrials names the scenarios whose intervals are mere extremes.
func fewTrials(r *Report) []string {
	need := stats.MinimumTrials(stats.Level)
	var few []string
	for i := range r.Scenarios {
		if s := &r.Scenarios[i]; s.Trials > 0 && s.Trials < need {
			few = append(few, fmt.Sprintf("%s %d", s.ID, s.Trials))
		}
	}
	if len(few) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("A 95 %% interval needs %d trials. Brackets hold the lowest and the highest trial of scenarios with fewer: %s.", need, phrase.And(few))}
}
