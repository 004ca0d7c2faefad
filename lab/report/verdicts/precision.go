package verdicts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/condition"
	"windtunnel/lab/report/figures"
	"windtunnel/lab/report/model"
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
// sets no precision. options are those of the run: if its figures are adjusted, Imprecision uses the adjusted figures.
func Imprecision(options sample.Options, plan suite.Plan, samples []sample.Sample) []model.Imprecise {
	if plan.Stop.Precision <= 0 {
		return nil
	}
	samples, _ = figures.Clean(samples)
	b := &Judge{Source: Source{Run: sample.Run{Options: options}, Plan: plan, Measured: samples}}
	choice := condition.Choice(options.CPUDistance)
	if options.Adjusted {
		samples = condition.Adjust(samples, choice)
	}
	_, parts, shown := condition.Split(samples, choice)
	b.Cells = figures.Group(plan, parts[shown], sample.Throughput, sample.Transactions, sample.SenderCPU, sample.ReceiverCPU)
	return b.imprecise()
}

func (b *Judge) imprecise() (list []model.Imprecise) {
	compared := make(map[string]bool)
	for _, c := range b.Plan.Comparisons {
		compared[c.Subject], compared[c.Baseline] = true, true
		if subject, baseline := b.Cells[c.Subject], b.Cells[c.Baseline]; subject != nil && baseline != nil {
			list = append(list, b.wide(subject, baseline)...)
		}
	}
	for i := range b.Plan.Scenarios {
		if id := b.Plan.Scenarios[i].ID; !compared[id] {
			list = append(list, b.wide(b.Cells[id], nil)...)
		}
	}
	slices.SortStableFunc(list, func(a, b model.Imprecise) int {
		return cmp.Or(model.After(a.HalfWidth != 0, b.HalfWidth != 0), cmp.Compare(b.HalfWidth, a.HalfWidth))
	})
	return list
}

// wide lists the subject's figures whose intervals are wider than the plan allows: the ratios to
// the baseline, or without a baseline the figures themselves.
func (b *Judge) wide(subject, baseline *figures.Cell) (list []model.Imprecise) {
	main := sample.Throughput
	if subject.Scenario.Workload.Kind.Exchange() {
		main = sample.Transactions
	}
	for _, m := range []sample.Metric{main, sample.SenderCPU, sample.ReceiverCPU} {
		if hopeless(subject, m) || baseline != nil && hopeless(baseline, m) {
			continue
		}
		entry := model.Imprecise{Subject: subject.Scenario.ID, Metric: m}
		by, of := value, pair{entry.Subject, m, entry.Subject, m}
		if baseline != nil {
			entry.Baseline = baseline.Scenario.ID
			by, of.baseline = ratio, entry.Baseline
		}
		iv, _, ok, err := b.estimate(by, of, stats.Level)
		switch {
		case err != nil: // a figure of zero has no ratio, so more trials cannot help
		case !ok || iv.N < stats.MinimumTrials(stats.Level):
			list = append(list, entry)
		case iv.Median > 0 && (iv.High-iv.Low)/2/iv.Median > b.Plan.Stop.Precision:
			entry.HalfWidth = (iv.High - iv.Low) / 2 / iv.Median
			list = append(list, entry)
		}
	}
	return list
}

// hopeless reports whether more trials of a scenario cannot improve its figure of m.
// Either it never ran, or no trial counted in several blocks, or m is absent or zero
// in the trials that count.
func hopeless(c *figures.Cell, m sample.Metric) bool {
	if c.Tried == 0 {
		return true
	}
	if last := &c.Samples[len(c.Samples)-1]; len(c.Counting) == 0 {
		return c.Tried >= hopelessAfter || !last.OK() && !last.Failure.Retryable()
	}
	figure, ok := c.Summary[m]
	return !ok || figure.Median == 0
}

// Precision reports whether all intervals are as narrow as the plan asks; nil if the
// plan asks for no precision.
func (b *Judge) Precision() *model.Precision {
	if b.Plan.Stop.Precision <= 0 {
		return nil
	}
	p := &model.Precision{Wanted: b.Plan.Stop.Precision, Blocks: b.Blocks, Widest: b.imprecise()}
	var dark []string // scenarios that ran, but have no trial that counts
	for _, row := range b.Rows {
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
func (b *Judge) shortfall(p *model.Precision, dark []string) (parts phrase.Lines) {
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
	switch stop := b.Plan.Stop; {
	case b.Run.Status == sample.Running:
		parts.Say("the run has not finished")
	case b.Run.Status == sample.Stopped:
		parts.Say("the run was interrupted")
	case stop.MaxTime > 0 && b.Run.Finished.Sub(b.Run.Started) >= stop.MaxTime:
		parts.Say("the run's time, %s, was over", stop.MaxTime.Round(time.Second))
	case stop.MaxTrials > 0 && p.Blocks >= stop.MaxTrials:
		parts.Say("the plan allows %s", phrase.Count(stop.MaxTrials, "trial"))
	}
	return parts
}
