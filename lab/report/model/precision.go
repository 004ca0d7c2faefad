package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/condition"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// hopelessAfter is a number of blocks. If no trial of a scenario counts in so many
// blocks, more blocks are not expected to help.
const hopelessAfter = 3

// Imprecision lists the figures with a wider interval than the plan's precision
// allows, the widest first. For each comparison it checks the ratios of throughput (or
// transactions) and of both sides' CPU. For each scenario without a comparison it
// checks the figures themselves. Figures with too few trials come first, with a
// half-width of 0. The list omits figures that more trials cannot improve: CPU that is
// absent or zero, and scenarios without a trial that counts. It is empty if the plan
// asks for no precision.
func Imprecision(plan suite.Plan, samples []sample.Sample, choice condition.Choice) []Imprecise {
	if plan.Stop.Precision <= 0 {
		return nil
	}
	samples, _ = clean(samples)
	_, parts, shown := condition.Split(samples, choice)
	return imprecise(plan, group(plan, parts[shown], sample.Throughput, sample.Transactions, sample.SenderCPU, sample.ReceiverCPU))
}

func imprecise(plan suite.Plan, cells map[string]*cell) (list []Imprecise) {
	compared := make(map[string]bool)
	for _, c := range plan.Comparisons {
		compared[c.Subject], compared[c.Baseline] = true, true
		if subject, baseline := cells[c.Subject], cells[c.Baseline]; subject != nil && baseline != nil {
			list = append(list, wide(plan.Stop.Precision, subject, baseline)...)
		}
	}
	for i := range plan.Scenarios {
		if id := plan.Scenarios[i].ID; !compared[id] {
			list = append(list, wide(plan.Stop.Precision, cells[id], nil)...)
		}
	}
	slices.SortStableFunc(list, func(a, b Imprecise) int {
		return cmp.Or(After(a.HalfWidth != 0, b.HalfWidth != 0), cmp.Compare(b.HalfWidth, a.HalfWidth))
	})
	return list
}

// wide lists the subject's figures with a wider interval than wanted: the ratios to
// the baseline, or without a baseline the figures themselves.
func wide(wanted float64, subject, baseline *cell) (list []Imprecise) {
	main := sample.Throughput
	if subject.scenario.Workload.Kind.Exchange() {
		main = sample.Transactions
	}
	for _, m := range []sample.Metric{main, sample.SenderCPU, sample.ReceiverCPU} {
		if subject.hopeless(m) || baseline != nil && baseline.hopeless(m) {
			continue
		}
		entry := Imprecise{Subject: subject.scenario.ID, Metric: m}
		iv, ok, err := stats.MedianInterval(subject.values[m], stats.Looked(stats.Level))
		if baseline != nil {
			var e stats.Estimate
			over, under, _ := pair(m, subject, baseline)
			e, ok, err = stats.Ratio(over, under, stats.Looked(stats.Level))
			entry.Baseline, iv = baseline.scenario.ID, e.Interval
		}
		switch {
		case err != nil: // a figure of zero has no ratio, so more trials cannot help
		case !ok || iv.N < stats.MinimumTrials(stats.Level):
			list = append(list, entry)
		case iv.Median > 0 && (iv.High-iv.Low)/2/iv.Median > wanted:
			entry.HalfWidth = (iv.High - iv.Low) / 2 / iv.Median
			list = append(list, entry)
		}
	}
	return list
}

// hopeless reports whether more trials of a scenario cannot improve its figure of m.
// Either it never ran, or no trial counted in several blocks, or m is absent or zero
// in the trials that count.
func (c *cell) hopeless(m sample.Metric) bool {
	if c.tried == 0 {
		return true
	}
	if last := &c.samples[len(c.samples)-1]; len(c.ok) == 0 {
		return c.tried >= hopelessAfter || !last.OK() && !last.Failure.Retryable()
	}
	figure, ok := c.summary[m]
	return !ok || figure.Median == 0
}

// precision reports whether all intervals are as narrow as the plan asks; nil if the
// plan asks for no precision.
func (b *builder) precision() *Precision {
	if b.plan.Stop.Precision <= 0 {
		return nil
	}
	p := &Precision{Wanted: b.plan.Stop.Precision, Blocks: b.blocks, Widest: imprecise(b.plan, b.cells)}
	var dark []string // scenarios that ran, but have no trial that counts
	for _, row := range b.rows {
		if row.Failed > 0 && row.Trials == 0 {
			dark = append(dark, row.ID)
		}
	}
	p.Reached = len(p.Widest) == 0 && p.Blocks > 0 && len(dark) == 0
	wanted, blocks := quantity.Percentage(p.Wanted), phrase.Count(p.Blocks, "block")
	switch {
	case p.Blocks == 0:
		p.Why = "Nothing was measured."
	case p.Reached:
		p.Why = fmt.Sprintf("In %s every requested figure is known within ±%s.", blocks, wanted)
	default:
		p.Why = fmt.Sprintf("The precision of ±%s was not reached in %s: %s.", wanted, blocks, strings.Join(b.shortfall(p, dark), "; "))
	}
	return p
}

// shortfall names the widest figures and the reason why the run ended.
func (b *builder) shortfall(p *Precision, dark []string) (parts phrase.Lines) {
	switch n := len(p.Widest); n {
	case 0:
		parts.Say("all other figures are known within ±%s, but no trial of %s counts", quantity.Percentage(p.Wanted), phrase.And(dark))
		dark = nil
	case 1:
		parts.Say("%s", p.Widest[0])
	default:
		parts.Say("%s, and %s", p.Widest[0], phrase.Count(n-1, "other figure"))
	}
	parts.SayIf(len(dark) > 0, "no trial of %s counts", phrase.And(dark))
	switch stop := b.plan.Stop; {
	case b.run.Status == sample.Running:
		parts.Say("the run has not finished")
	case b.run.Status == sample.Stopped:
		parts.Say("the run was interrupted")
	case stop.MaxTime > 0 && b.run.Finished.Sub(b.run.Started) >= stop.MaxTime:
		parts.Say("the run's time, %s, was over", stop.MaxTime.Round(time.Second))
	case stop.MaxTrials > 0 && p.Blocks >= stop.MaxTrials:
		parts.Say("the plan allows %s", phrase.Count(stop.MaxTrials, "trial"))
	}
	return parts
}

// String describes the figure and its half-width: "receiver CPU of vxlan/stream to that
// of raw/stream is known within ±5.1 %".
func (i Imprecise) String() string {
	what := i.Metric.Label() + " of " + i.Subject
	if i.Baseline != "" {
		what += " to that of " + i.Baseline
	}
	if i.HalfWidth == 0 {
		return what + " has too few trials for an interval"
	}
	return what + " is known within ±" + quantity.Percentage(i.HalfWidth)
}
