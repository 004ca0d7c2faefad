package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// mostFindings is how many sentences a person reads before the table.
const mostFindings = 4

// findings returns one sentence for each pair of systems that the plan compares.
// A sentence states a difference only if the comparison's verdict does. A plan
// without comparisons gets a sentence on the fastest scenario.
func findings(r *Report) []string {
	if !slices.ContainsFunc(r.Scenarios, func(s Scenario) bool { return s.Trials > 0 }) {
		return []string{"No trial yielded figures that count, so nothing can be said; Validity says why."}
	}
	all := contrasts(r)
	if len(all) == 0 {
		return fastest(r)
	}
	shown := surest(all)
	var sentences []string
	for _, c := range all { // in the plan's order
		if slices.Contains(shown, c) {
			sentences = append(sentences, c.sentence())
		}
	}
	if more := len(all) - len(sentences); more > 0 {
		sentences[len(sentences)-1] += fmt.Sprintf(" (%d further in the table.)", more)
	}
	return sentences
}

// surest returns the contrasts to be said where not all can be: first those of
// which something is certain, then those with the largest difference.
func surest(all []*contrast) []*contrast {
	list := slices.Clone(all)
	slices.SortStableFunc(list, func(a, b *contrast) int {
		certainA, farA := a.weight()
		certainB, farB := b.weight()
		return cmp.Or(cmp.Compare(after(!certainA), after(!certainB)), cmp.Compare(farB, farA))
	})
	return list[:min(len(list), mostFindings)]
}

// fastest is for plans without comparisons. It names the fastest scenario of
// each kind of traffic, or several if their intervals overlap.
func fastest(r *Report) []string {
	var sentences []string
	for _, m := range []sample.Metric{sample.Throughput, sample.Transactions} {
		var field []*Scenario
		for i := range r.Scenarios {
			if s := &r.Scenarios[i]; s.Interval(m) != nil && (m == sample.Transactions) == (s.Transactions != nil) {
				field = append(field, s)
			}
		}
		if len(field) > 0 {
			sentences = append(sentences, winner(m, field))
		}
	}
	return sentences
}

func winner(m sample.Metric, field []*Scenario) string {
	slices.SortStableFunc(field, func(a, b *Scenario) int { return cmp.Compare(b.Interval(m).Median, a.Interval(m).Median) })
	figure := func(s *Scenario) string {
		scale := ScaleOf(m, s.Interval(m).Median)
		median, bounds := scale.Figure(*s.Interval(m))
		return strings.TrimSpace(withUnit(median, scale.Unit) + " " + bounds)
	}
	first := field[0].Interval(m)
	var level []string // those that the first does not stand clear of
	for _, s := range field {
		if s.Interval(m).High >= first.Low {
			level = append(level, s.ID)
		}
	}
	text := fmt.Sprintf("%s reaches %s.", field[0].ID, figure(field[0]))
	switch {
	case len(level) > 1:
		text = fmt.Sprintf("Which has the most %s does not show: the intervals of %s overlap; %s has the highest median, %s.", m.Label(), strings.Join(level, ", "), level[0], figure(field[0]))
	case len(field) > 1:
		text = fmt.Sprintf("%s has the most %s, %s; next is %s with %s.", field[0].ID, m.Label(), figure(field[0]), field[1].ID, figure(field[1]))
	}
	if need := stats.MinimumTrials(stats.Level); first.N < need {
		text += fmt.Sprintf(" (In %d trials; a 95 %% interval needs %d.)", first.N, need)
	}
	return text
}
