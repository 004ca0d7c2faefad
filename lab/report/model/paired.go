package model

import (
	"math"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

const (
	// Alpha is the largest corrected p-value of a difference that a report
	// claims.
	Alpha = 0.05
	// Power is the probability with which the test finds a difference of the
	// detectable size.
	Power = 0.8
)

// pairKey is one metric of two scenarios.
type pairKey struct {
	subject, baseline string
	metric            sample.Metric
}

// paired compares one metric of two scenarios, over the blocks that both have. All
// parts of a report share one comparison for each pair and metric. settle sets its
// verdict. If there is no ratio, paired returns nil and adds the reason to the doubts.
func (b *builder) paired(subject, baseline string, m sample.Metric) *Comparison {
	key := pairKey{subject, baseline, m}
	if known, ok := b.pairs[key]; ok {
		return known
	}
	b.pairs[key] = nil
	over, under, blocks := pair(m, b.cells[subject], b.cells[baseline])
	e, ok, err := b.ratio(over, under, stats.Level)
	if err != nil {
		b.doubt.Say("%s: there is no ratio of %s to %s, because %v.", phrase.Capital(m.Label()), subject, baseline, err)
	}
	if !ok || err != nil {
		return nil
	}
	c := &Comparison{Subject: subject, Baseline: baseline, Metric: m, Ratio: quantity.Interval(e.Interval), Verdict: TooFew, logs: make(map[int]float64)}
	for i, block := range blocks {
		c.logs[block] = math.Log(over[i] / under[i])
	}
	if !c.few() {
		c.P, c.Effect, c.Verdict = &e.P, &e.Effect, Alike
		if c.excludesOne() {
			c.Verdict = Suggested
		}
	}
	if d, ok, err := stats.DetectableRatio(over, under, 1-b.level(stats.Level), Power); ok && err == nil {
		c.Detectable = &d
		if c.Verdict == Alike && d > NoisyAbove {
			c.Verdict = TooNoisy
		}
	}
	b.pairs[key] = c
	return c
}

// few reports whether there are too few blocks to show a difference.
func (c *Comparison) few() bool { return c.Ratio.N < stats.MinimumTrials(stats.Level) }

func (c *Comparison) excludesOne() bool { return stats.Interval(c.Ratio).Excludes(1) }

// ratio estimates over / under with an interval of this confidence. If the plan asks
// for a precision, the interval is wider, because its width decided when the run ended.
func (b *builder) ratio(over, under []float64, level float64) (stats.Estimate, bool, error) {
	e, ok, err := stats.Ratio(over, under, b.level(level))
	if b.plan.Stop.Precision > 0 {
		e = e.AfterLooks()
	}
	return e, ok, err
}

// difference is ratio, but estimates over − under.
func (b *builder) difference(over, under []float64, level float64) (stats.Estimate, bool, error) {
	e, ok, err := stats.Difference(over, under, b.level(level))
	if b.plan.Stop.Precision > 0 {
		e = e.AfterLooks()
	}
	return e, ok, err
}

// level returns the confidence at which an interval must be computed. It is higher if
// the plan asks for a precision.
func (b *builder) level(level float64) float64 {
	if b.plan.Stop.Precision > 0 {
		return stats.Looked(level)
	}
	return level
}

// pair returns the values of subject and baseline, and their blocks in ascending
// order. It takes only blocks that have a value of both.
func pair(m sample.Metric, subject, baseline *cell) (over, under []float64, blocks []int) {
	if subject == nil || baseline == nil {
		return nil, nil, nil
	}
	for i, block := range subject.blocks[m] {
		if j, both := slices.BinarySearch(baseline.blocks[m], block); both {
			over, under, blocks = append(over, subject.values[m][i]), append(under, baseline.values[m][j]), append(blocks, block)
		}
	}
	return over, under, blocks
}
