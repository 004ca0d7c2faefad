package model

import (
	"cmp"
	"fmt"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// hypotheses judges the plan's hypotheses.
func (b *builder) hypotheses() []Hypothesis {
	var list []Hypothesis
	for i := range b.plan.Hypotheses {
		list = append(list, b.hypothesis(&b.plan.Hypotheses[i]))
	}
	return list
}

// hypothesis judges one hypothesis. It holds if it holds for every subject. It is
// refuted if it is refuted for one subject. With several subjects their intervals are
// wider (Bonferroni): all contain the true ratios with 95 % confidence.
func (b *builder) hypothesis(h *suite.Hypothesis) Hypothesis {
	out := Hypothesis{Hypothesis: *h, Judgement: Holds}
	if len(h.Subjects) == 0 {
		out.Judgement, out.Why = Undecided, "It names no subject."
		return out
	}
	level := 1 - Alpha/float64(len(h.Subjects))
	var whys []string
	for _, subject := range h.Subjects {
		o, why := b.observe(h, subject, level)
		out.Observed, whys = append(out.Observed, o), append(whys, phrase.Capital(why)+".")
		if o.Judgement == Refuted || out.Judgement == Holds {
			out.Judgement = o.Judgement
		}
	}
	out.Why = strings.Join(whys, " ")
	return out
}

// observe judges one subject. It returns the reason in words.
func (b *builder) observe(h *suite.Hypothesis, subject string, level float64) (Observed, string) {
	o := Observed{Subject: subject, Judgement: Undecided}
	m := sample.Metric(h.Metric)
	for _, id := range []string{subject, h.Baseline} {
		if !b.measured(id) {
			return o, "there are no figures: " + b.lacks(id)
		}
		if len(b.cells[id].values[m]) == 0 {
			return o, fmt.Sprintf("%s was not measured in %s", m.Label(), id)
		}
	}
	over, under, _ := pair(m, b.cells[subject], b.cells[h.Baseline])
	if len(over) == 0 {
		return o, cmp.Or(b.withoutCommonBlock(subject, h.Baseline), fmt.Sprintf("no block has %s of both %s and %s", m.Label(), subject, h.Baseline))
	}
	e, ok, err := b.ratio(over, under, level)
	if err != nil {
		return o, fmt.Sprintf("%s of %s and %s has no ratio: %v", m.Label(), subject, h.Baseline, err)
	}
	if !ok {
		return o, fmt.Sprintf("%s of %s and %s has no ratio", m.Label(), subject, h.Baseline)
	}
	ratio := Interval(e.Interval)
	o.Ratio = &ratio
	about := fmt.Sprintf("%s of %s is %s that of %s", m.Label(), subject, bracketed(ratio, 2, "×", 1, h.Low, h.High), h.Baseline)
	if need := stats.MinimumTrials(level); ratio.N < need {
		return o, fmt.Sprintf("%s in %s, too few to judge by: %d are needed", about, phrase.Count(ratio.N, "trial"), need)
	}
	about += fmt.Sprintf(" (%.3g %% interval, n = %d)", 100*level, ratio.N)
	how := "partly within"
	switch {
	case ratio.Low >= h.Low && ratio.High <= h.High:
		o.Judgement, how = Holds, "within"
	case ratio.High < h.Low || ratio.Low > h.High:
		o.Judgement, how = Refuted, "outside"
	}
	return o, fmt.Sprintf("%s, %s %s", about, how, h.Printed)
}
