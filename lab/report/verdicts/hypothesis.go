package verdicts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// Hypotheses judges the plan's hypotheses.
func (b *Judge) Hypotheses() []model.Hypothesis {
	var list []model.Hypothesis
	for i := range b.Plan.Hypotheses {
		list = append(list, b.hypothesis(&b.Plan.Hypotheses[i]))
	}
	return list
}

// hypothesis judges one hypothesis. It holds if it holds for every subject. It is
// refuted if it is refuted for one subject, and then has the cause that the suite gives for
// the first such subject. With several subjects their intervals are
// wider (Bonferroni): all contain the true ratios with 95 % confidence.
func (b *Judge) hypothesis(h *suite.Hypothesis) model.Hypothesis {
	out := model.Hypothesis{Hypothesis: *h, Judgement: model.Holds}
	if len(h.Subjects) == 0 {
		out.Judgement, out.Why = model.Undecided, "It names no subject."
		return out
	}
	level := 1 - Alpha/float64(len(h.Subjects))
	var whys []string
	for _, subject := range h.Subjects {
		o, why := b.observe(h, subject, level)
		out.Observed, whys = append(out.Observed, o), append(whys, phrase.Capital(why)+".")
		if reason := b.unjudged(h, subject, &o); reason != "" {
			out.Cause = reason
		} else if o.Judgement == model.Refuted && out.Judgement != model.Refuted {
			out.Cause = b.Plan.CauseOf(subject, h.Baseline, h.Metric)
		}
		if o.Judgement == model.Refuted || out.Judgement == model.Holds {
			out.Judgement = o.Judgement
		}
	}
	out.Why = strings.Join(whys, " ")
	return out
}

// observe judges one subject. It returns the reason in words.
func (b *Judge) observe(h *suite.Hypothesis, subject string, level float64) (model.Observed, string) {
	o := model.Observed{Subject: subject, Judgement: model.Undecided}
	if why := b.lacksFigures(h, subject); why != "" {
		if b.Run.Skipped[subject]+b.Run.Skipped[h.Baseline] != "" {
			o.Judgement = model.NotHere
		}
		return o, why
	}
	figure, why := b.hypothesisFigure(h, subject, level)
	if why != "" {
		return o, why
	}
	o.Figure = &figure
	about := sentence(model.Hypothesis{Hypothesis: *h}, subject, figure)
	if h.Spread {
		about += b.spreads(h, subject)
	}
	if need := stats.MinimumTrials(level); figure.N < need {
		return o, fmt.Sprintf("%s in %s, too few to judge by: %d are needed", about, phrase.Count(figure.N, "trial"), need)
	}
	about += fmt.Sprintf(" (%.3g %% interval, n = %d)", 100*level, figure.N)
	how := "partly within"
	switch {
	case figure.Low >= h.Low && figure.High <= h.High:
		o.Judgement, how = model.Holds, "within"
	case figure.High < h.Low || figure.Low > h.High:
		o.Judgement, how = model.Refuted, "outside"
	}
	return o, fmt.Sprintf("%s, %s %s", about, how, h.Printed)
}

// unjudged replaces the judgement of a subject with a figure if the suite rules so, or if VMs
// with an emulated CPU made the figure. It returns the reason; "" if the judgement stays.
func (b *Judge) unjudged(h *suite.Hypothesis, subject string, o *model.Observed) string {
	if o.Figure == nil {
		return ""
	}
	verdict, reason := b.Plan.RulingOf(subject, h.Baseline, h.Metric)
	if verdict == "" {
		if reason = b.Emulated(subject, h.Baseline); reason != "" {
			verdict = suite.NotHere
		}
	}
	if verdict != "" {
		o.Judgement = model.Judgement(verdict)
	}
	return reason
}

// Emulated returns why no conclusion is possible from scenarios that ran in VMs without
// KVM; "" if none of them did. Scenarios may be "".
func (b *Judge) Emulated(scenarios ...string) string {
	for _, id := range scenarios {
		if c := b.Cells[id]; c != nil && c.Emulated() {
			return "the CPUs of the guests are emulated (TCG), and a packet costs an emulated CPU much more than a real one"
		}
	}
	return ""
}

// lacksFigures returns why a subject or the baseline has no figures; "" if both have
// them.
func (b *Judge) lacksFigures(h *suite.Hypothesis, subject string) string {
	for _, id := range slices.DeleteFunc([]string{subject, h.Baseline}, func(id string) bool { return id == "" }) {
		if !b.measured(id) {
			return "there are no figures: " + b.Lacks(id)
		}
		for _, m := range []string{h.Metric, h.Over} {
			if m != "" && len(b.Cells[id].Values[sample.Metric(m)]) == 0 {
				return fmt.Sprintf("%s was not measured in %s%s", sample.Metric(m).Label(), id, NotPinned(b.Cells[id].Scenario, sample.Metric(m)))
			}
		}
	}
	return ""
}

// hypothesisFigure estimates the figure that the hypothesis bounds, with an interval of
// this confidence. It returns the reason if there is none.
func (b *Judge) hypothesisFigure(h *suite.Hypothesis, subject string, level float64) (quantity.Interval, string) {
	m, of := sample.Metric(h.Metric), subject+" and "+h.Baseline
	figures, by := pair{subject, m, h.Baseline, m}, ratio
	switch {
	case h.Over != "":
		of = subject
		figures = pair{subject, m, subject, sample.Metric(h.Over)}
	case h.Baseline == "":
		figures, by, of = pair{subject, m, subject, m}, value, subject
	case h.Spread:
		by = spread
	case h.Difference:
		by = difference
	}
	over, _, _ := figures.values(b.Cells)
	if len(over) == 0 {
		return quantity.Interval{}, cmp.Or(b.WithoutCommonBlock(subject, h.Baseline), fmt.Sprintf("no block has %s of both %s", m.Label(), of))
	}
	e, _, ok, err := b.estimate(by, figures, level)
	if err != nil {
		return quantity.Interval{}, fmt.Sprintf("%s: there is no ratio of %s, because %v", m.Label(), of, err)
	}
	if !ok {
		return quantity.Interval{}, fmt.Sprintf("%s of %s has no ratio in %s", m.Label(), of, phrase.Count(len(over), "trial"))
	}
	return quantity.Interval(e.Interval), ""
}

// spreads formats the coefficients of variation of subject and baseline: ": 4.1 % beside 10 %". The figure of a hypothesis
// about spreads is the ratio of the two.
func (b *Judge) spreads(h *suite.Hypothesis, subject string) string {
	m := sample.Metric(h.Metric)
	over, under, _ := Pair(b.Cells[subject], m, b.Cells[h.Baseline], m)
	var cvs [2]float64
	for i, xs := range [][]float64{over, under} {
		cvs[i], _, _ = stats.CoefficientOfVariation(xs) // no error: hypothesisFigure has computed the same before
	}
	return fmt.Sprintf(": %.2g %% beside %.2g %%", 100*cvs[0], 100*cvs[1])
}

// sentence states the figure of a subject: "throughput of b/stream is 0.98× [0.97, 0.99]
// that of a/stream".
func sentence(h model.Hypothesis, subject string, figure quantity.Interval) string {
	m, text := sample.Metric(h.Metric), h.FigureText(figure)
	switch {
	case h.Spread:
		return fmt.Sprintf("spread (coefficient of variation) of %s over the trials of %s is %s that of %s", m.Label(), subject, text, h.Baseline)
	case h.Over != "":
		return fmt.Sprintf("%s of %s is %s its %s", m.Label(), subject, text, sample.Metric(h.Over).Label())
	case h.Difference:
		return fmt.Sprintf("%s of %s less that of %s is %s", m.Label(), subject, h.Baseline, text)
	case h.Baseline == "":
		return fmt.Sprintf("%s of %s is %s", m.Label(), subject, text)
	}
	return fmt.Sprintf("%s of %s is %s that of %s", m.Label(), subject, text, h.Baseline)
}
