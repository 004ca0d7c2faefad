package model

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// notes returns remarks on the figures: first the suite's notes, then the gaps and
// doubts of this run.
func (b *builder) notes() []string {
	notes := phrase.Lines(slices.Clone(b.plan.Notes))
	notes.SayIf(b.plan.Short, "This is the short form of the suite: fewer or shorter trials, and it may leave scenarios out.")
	notes.SayIf(b.run.Status == sample.Running, "The run has not finished. The report has its figures so far.")
	notes.SayIf(b.run.Status == sample.Stopped, "The run was interrupted: blocks may lack scenarios.")
	notes.SayIf(b.run.Status == sample.Empty, "The run ended, and no trial counts.")
	need := stats.MinimumTrials(stats.Level)
	var emulated, few []string
	for i := range b.rows {
		s := &b.rows[i]
		if strings.HasSuffix(s.Title, emulatedMark) {
			emulated = append(emulated, s.ID)
		}
		if s.Trials > 0 && s.Trials < need { // the interval has the lowest and the highest trial
			few = append(few, fmt.Sprintf("%s %d", s.ID, s.Trials))
		}
	}
	notes.SayIf(emulated != nil, "%s: %s. Compare them with each other only.", phrase.Capital(sample.Emulated), phrase.And(emulated))
	notes.SayIf(few != nil, "A 95 %% interval needs %d trials. Brackets hold the lowest and the highest trial of scenarios with fewer: %s.", need, several(few))
	for i := range b.rows {
		dirty := b.dirty[b.rows[i].ID]
		slices.Sort(dirty)
		notes.SayIf(dirty != nil, "%s: values that are not finite numbers are left out (%s).", b.rows[i].ID, strings.Trim(fmt.Sprint(dirty), "[]"))
	}
	return append(notes, b.doubt...)
}

// several lists names for a sentence. Of more than mostNamed it names the first ones.
func several(names []string) string {
	if len(names) > mostNamed {
		return phrase.Some(names, mostNamed)
	}
	return phrase.And(names)
}

// ValidityLines state how many trials count, which planned trials are missing,
// whether the precision was reached, and what to do about rejected trials.
func (r *Report) ValidityLines() []string {
	if r.Validity.Attempts == 0 {
		return nil
	}
	lines := phrase.Lines{r.Validity.Line()}
	var missing phrase.Lines
	for i := range r.Scenarios {
		id := r.Scenarios[i].ID
		missing.SayIf(r.Validity.Missing[id] > 0, "%s %d", id, r.Validity.Missing[id])
	}
	lines.SayIf(missing != nil, "Planned trials without figures that count: %s.", phrase.Some(missing, mostNamed))
	lines = append(lines, r.Outcomes()...)
	if r.Precision != nil {
		lines = append(lines, r.Precision.Why)
	}
	return append(lines, r.Advice()...)
}

// HypothesisLines writes each hypothesis as "holds: the claim. The figures."
func (r *Report) HypothesisLines() (lines phrase.Lines) {
	for _, h := range r.Hypotheses {
		lines.Say("%s: %s. %s", h.Judgement, strings.TrimSuffix(h.Claim, "."), h.Why)
	}
	return lines
}
