package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"windtunnel/lab/condition"
	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// hopelessAfter is in how many blocks a scenario may fail to be measured at all
// before more of them are taken not to help.
const hopelessAfter = 3

// Imprecision lists the figures that are not known as well as the plan's
// precision asks, the widest first: of each comparison the ratios of throughput
// (or transactions) and of both sides' CPU, and of each scenario without any
// comparison the same figures of its own. Figures of which there are too few
// trials come first, with a half-width of 0. What more trials cannot mend is
// left out: CPU that is absent or zero, and scenarios of which no trial ever
// counted. Where the plan asks for no precision there is nothing.
func Imprecision(plan suite.Plan, samples []sample.Sample, choice condition.Choice) []Imprecise {
	if plan.Stop.Precision <= 0 {
		return nil
	}
	_, parts, shown := condition.Split(samples, choice)
	x := imprecision{wanted: plan.Stop.Precision, cells: gather(plan, parts[shown])}
	compared := make(map[string]bool)
	kinds := make(map[string]bool)
	for i := range plan.Scenarios {
		kinds[plan.Scenarios[i].ID] = plan.Scenarios[i].Workload.Kind.Exchange()
	}
	for _, c := range plan.Comparisons {
		compared[c.Subject], compared[c.Baseline] = true, true
		for _, m := range pursued(kinds[c.Subject]) {
			x.ratio(c, m)
		}
	}
	for i := range plan.Scenarios {
		if id := plan.Scenarios[i].ID; !compared[id] {
			for _, m := range pursued(kinds[id]) {
				x.own(id, m)
			}
		}
	}
	slices.SortStableFunc(x.list, func(a, b Imprecise) int {
		return cmp.Or(cmp.Compare(after(a.HalfWidth != 0), after(b.HalfWidth != 0)), cmp.Compare(b.HalfWidth, a.HalfWidth))
	})
	return x.list
}

// pursued lists the metrics whose precision a plan can ask for.
func pursued(exchange bool) []sample.Metric {
	if exchange {
		return []sample.Metric{sample.Transactions, sample.SenderCPU, sample.ReceiverCPU}
	}
	return []sample.Metric{sample.Throughput, sample.SenderCPU, sample.ReceiverCPU}
}

type imprecision struct {
	wanted float64
	cells  map[string]*cell
	list   []Imprecise
}

// gather sorts the samples into cells with no more than the metrics pursued:
// it is done after every block of a run.
func gather(plan suite.Plan, samples []sample.Sample) map[string]*cell {
	cells := sorted(plan, samples)
	for _, c := range cells {
		c.values, c.blocks = make(map[sample.Metric][]float64), make(map[sample.Metric][]int)
		for _, m := range []sample.Metric{sample.Throughput, sample.Transactions, sample.SenderCPU, sample.ReceiverCPU} {
			for _, s := range c.ok {
				if v, ok := s.Metrics[m]; ok && units.Finite(v) {
					c.values[m] = append(c.values[m], v)
					c.blocks[m] = append(c.blocks[m], s.Block)
				}
			}
		}
	}
	return cells
}

// hopeless reports whether more trials of a scenario would not help: it never
// ran, or no trial of several ever counted.
func (c *cell) hopeless() bool {
	if c == nil || c.tried == 0 {
		return true
	}
	last := c.all[len(c.all)-1]
	return len(c.ok) == 0 && (c.tried >= hopelessAfter || !last.OK() && !last.Failure.Retryable())
}

// ratio adds a comparison's ratio where it is too wide.
func (x *imprecision) ratio(c suite.Comparison, m sample.Metric) {
	subject, baseline := x.cells[c.Subject], x.cells[c.Baseline]
	if subject.hopeless() || baseline.hopeless() || absent(subject, m) || absent(baseline, m) {
		return
	}
	over, under, _ := pair(m, subject, baseline)
	e, ok, err := stats.Ratio(over, under, stats.Looked(stats.Level))
	if err != nil {
		return // a figure of zero has no ratio, however often it is measured
	}
	x.add(Imprecise{Subject: c.Subject, Baseline: c.Baseline, Metric: m}, Interval(e.Interval), ok)
}

// own adds a scenario's own figure where it is too wide.
func (x *imprecision) own(id string, m sample.Metric) {
	c := x.cells[id]
	if c.hopeless() || absent(c, m) {
		return
	}
	iv, ok, err := stats.MedianInterval(c.values[m], stats.Looked(stats.Level))
	if err != nil {
		return
	}
	x.add(Imprecise{Subject: id, Metric: m}, Interval(iv), ok)
}

// absent reports whether a scenario that has figures has none of m, or zero.
func absent(c *cell, m sample.Metric) bool {
	if len(c.ok) == 0 {
		return false // it may yet have
	}
	median, ok, err := stats.Median(c.values[m])
	return !ok || err != nil || median == 0
}

func (x *imprecision) add(entry Imprecise, iv Interval, ok bool) {
	if !ok || iv.N < stats.MinimumTrials(stats.Level) {
		x.list = append(x.list, entry)
		return
	}
	if iv.Median <= 0 {
		return
	}
	if entry.HalfWidth = (iv.High - iv.Low) / 2 / iv.Median; entry.HalfWidth > x.wanted {
		x.list = append(x.list, entry)
	}
}

// precision says whether the run knows its figures as well as its plan asks;
// nil where the plan does not ask.
func (b *builder) precision(samples []sample.Sample) *Precision {
	if b.plan.Stop.Precision <= 0 {
		return nil
	}
	p := &Precision{Wanted: b.plan.Stop.Precision, Blocks: b.blocks, Widest: Imprecision(b.plan, samples, condition.Choice(b.run.Options.CPUDistance))}
	dark := b.unmeasured()
	p.Reached = len(p.Widest) == 0 && p.Blocks > 0 && len(dark) == 0
	switch {
	case p.Blocks == 0:
		p.Why = "Nothing was measured."
	case p.Reached:
		p.Why = fmt.Sprintf("In %s every figure that was asked for is known within ±%s.", phrase.Count(p.Blocks, "block"), percentage(p.Wanted))
	default:
		p.Why = fmt.Sprintf("±%s was asked for and not reached in %s: %s.", percentage(p.Wanted), phrase.Count(p.Blocks, "block"), b.shortfall(p, dark))
	}
	return p
}

// unmeasured lists the scenarios that ran and of which no trial counts.
func (b *builder) unmeasured() []string {
	var ids []string
	for i := range b.plan.Scenarios {
		if c := b.cells[b.plan.Scenarios[i].ID]; c.tried > 0 && len(c.ok) == 0 {
			ids = append(ids, b.plan.Scenarios[i].ID)
		}
	}
	return ids
}

// shortfall says what is not known well enough and why the run ended.
func (b *builder) shortfall(p *Precision, dark []string) string {
	var text string
	switch n := len(p.Widest); {
	case n == 0:
		text = "every other figure is known that well, but of " + phrase.And(dark) + " no trial counts"
	case n == 1:
		text = p.Widest[0].String()
	default:
		text = fmt.Sprintf("%s, and %s", p.Widest[0], phrase.Count(n-1, "other figure"))
	}
	if n := len(p.Widest); n > 0 && len(dark) > 0 {
		text += "; of " + phrase.And(dark) + " no trial counts"
	}
	stop := b.plan.Stop
	switch {
	case b.run.Status == sample.Running:
		text += "; the run has not finished"
	case b.run.Status == sample.Stopped:
		text += "; the run was interrupted"
	case stop.MaxTime > 0 && b.run.Finished.Sub(b.run.Started) >= stop.MaxTime:
		text += fmt.Sprintf("; the run's time, %s, was over", stop.MaxTime.Round(time.Second))
	case stop.MaxTrials > 0 && p.Blocks >= stop.MaxTrials:
		text += fmt.Sprintf("; the plan allows %s", phrase.Count(stop.MaxTrials, "trial"))
	}
	return text
}

// String is the figure with how well it is known: "receiver CPU of vxlan/stream
// to that of raw/stream is known within ±5.1 %".
func (i Imprecise) String() string {
	what := fmt.Sprintf("%s of %s", i.Metric.Label(), i.Subject)
	if i.Baseline != "" {
		what += " to that of " + i.Baseline
	}
	if i.HalfWidth == 0 {
		return what + " has too few trials for an interval"
	}
	return what + " is known within ±" + percentage(i.HalfWidth)
}
