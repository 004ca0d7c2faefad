package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
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
// refuted if it is refuted for one subject, and then has the cause that the suite gives for
// the first such subject. With several subjects their intervals are
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
		if o.Judgement == Refuted && out.Judgement != Refuted {
			out.Cause = b.plan.CauseOf(subject, h.Baseline, h.Metric)
		}
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
	if why := b.lacksFigures(h, subject); why != "" {
		if b.run.Skipped[subject]+b.run.Skipped[h.Baseline] != "" {
			o.Judgement = NotHere
		}
		return o, why
	}
	figure, why := b.hypothesisFigure(h, subject, level)
	if why != "" {
		return o, why
	}
	o.Figure = &figure
	about := Hypothesis{Hypothesis: *h}.sentence(subject, figure)
	if need := stats.MinimumTrials(level); figure.N < need {
		return o, fmt.Sprintf("%s in %s, too few to judge by: %d are needed", about, phrase.Count(figure.N, "trial"), need)
	}
	about += fmt.Sprintf(" (%.3g %% interval, n = %d)", 100*level, figure.N)
	how := "partly within"
	switch {
	case figure.Low >= h.Low && figure.High <= h.High:
		o.Judgement, how = Holds, "within"
	case figure.High < h.Low || figure.Low > h.High:
		o.Judgement, how = Refuted, "outside"
	}
	return o, fmt.Sprintf("%s, %s %s", about, how, h.Printed)
}

// lacksFigures returns why a subject or the baseline has no figures; "" if both have
// them.
func (b *builder) lacksFigures(h *suite.Hypothesis, subject string) string {
	for _, id := range slices.DeleteFunc([]string{subject, h.Baseline}, func(id string) bool { return id == "" }) {
		if !b.measured(id) {
			return "there are no figures: " + b.lacks(id)
		}
		for _, m := range []string{h.Metric, h.Over} {
			if m != "" && len(b.cells[id].values[sample.Metric(m)]) == 0 {
				return fmt.Sprintf("%s was not measured in %s", sample.Metric(m).Label(), id)
			}
		}
	}
	return ""
}

// hypothesisFigure estimates the figure that the hypothesis bounds, with an interval of
// this confidence. It returns the reason if there is none.
func (b *builder) hypothesisFigure(h *suite.Hypothesis, subject string, level float64) (quantity.Interval, string) {
	m, of := sample.Metric(h.Metric), subject+" and "+h.Baseline
	over, under, _ := pair(m, b.cells[subject], b.cells[h.Baseline])
	estimate := b.ratio
	switch {
	case h.Over != "":
		of = subject
		over, under = both(b.cells[subject], m, sample.Metric(h.Over))
	case h.Baseline == "":
		iv, _, err := stats.MedianInterval(b.cells[subject].values[m], b.level(level))
		if err != nil {
			return quantity.Interval{}, fmt.Sprintf("%s of %s has no interval: %v", m.Label(), subject, err)
		}
		return quantity.Interval(iv), ""
	case h.Difference:
		estimate = b.difference
	}
	if len(over) == 0 {
		return quantity.Interval{}, cmp.Or(b.withoutCommonBlock(subject, h.Baseline), fmt.Sprintf("no block has %s of both %s", m.Label(), of))
	}
	e, ok, err := estimate(over, under, level)
	if err != nil {
		return quantity.Interval{}, fmt.Sprintf("%s: there is no ratio of %s, because %v", m.Label(), of, err)
	}
	if !ok {
		return quantity.Interval{}, fmt.Sprintf("%s of %s has no ratio", m.Label(), of)
	}
	return quantity.Interval(e.Interval), ""
}

// both returns the values of two metrics of one scenario, of the blocks that have both.
func both(c *cell, m, other sample.Metric) (over, under []float64) {
	for i, block := range c.blocks[m] {
		if j, found := slices.BinarySearch(c.blocks[other], block); found {
			over, under = append(over, c.values[m][i]), append(under, c.values[other][j])
		}
	}
	return over, under
}

// sentence states the figure of a subject: "throughput of b/stream is 0.98× [0.97, 0.99]
// that of a/stream".
func (h Hypothesis) sentence(subject string, figure quantity.Interval) string {
	m, text := sample.Metric(h.Metric), h.FigureText(figure)
	switch {
	case h.Over != "":
		return fmt.Sprintf("%s of %s is %s its %s", m.Label(), subject, text, sample.Metric(h.Over).Label())
	case h.Difference:
		return fmt.Sprintf("%s of %s less that of %s is %s", m.Label(), subject, h.Baseline, text)
	case h.Baseline == "":
		return fmt.Sprintf("%s of %s is %s", m.Label(), subject, text)
	}
	return fmt.Sprintf("%s of %s is %s that of %s", m.Label(), subject, text, h.Baseline)
}

// Of names the scenarios of a subject's figure: "b/stream / a/stream".
func (h Hypothesis) Of(subject string) string {
	switch {
	case h.Baseline == "":
		return subject
	case h.Difference:
		return subject + " − " + h.Baseline
	}
	return subject + " / " + h.Baseline
}

// Label names the metric of the figure for people.
func (h Hypothesis) Label() string {
	label := sample.Metric(h.Metric).Label()
	if h.Over != "" {
		label += " / " + sample.Metric(h.Over).Label()
	}
	return label
}

// FigureText prints a figure of the hypothesis with its interval: "0.98× [0.97, 0.99]",
// or "9.31 Gbit/s [9.28, 9.35]".
func (h Hypothesis) FigureText(figure quantity.Interval) string {
	if h.Over != "" || h.Baseline != "" && !h.Difference {
		return quantity.Bracketed(figure, 2, "×", 1, h.Low, h.High)
	}
	scale := quantity.ScaleOf(sample.Metric(h.Metric), figure.Low, figure.High)
	by := func(v float64) float64 { return v / scale.By }
	scaled := quantity.Interval{Median: by(figure.Median), Low: by(figure.Low), High: by(figure.High), N: figure.N}
	text := quantity.Bracketed(scaled, quantity.Significant(scaled.Median), strings.TrimPrefix(quantity.WithUnit(" ", scale.Unit), " "), by(h.Low), by(h.High))
	return strings.ReplaceAll(text, "-", "−")
}
