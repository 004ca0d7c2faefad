package verdicts

import (
	"math"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/figures"
	"windtunnel/lab/report/model"
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

// Paired compares one metric of two scenarios, over the blocks that both have. All
// parts of a report share one comparison for each pair and metric. settle sets its
// verdict. If there is no ratio, Paired returns nil and adds the reason to the doubts.
func (b *Judge) Paired(subject, baseline string, m sample.Metric) *model.Comparison {
	key := pairKey{subject, baseline, m}
	if known, ok := b.pairs[key]; ok {
		return known
	}
	if b.pairs == nil {
		b.pairs = make(map[pairKey]*model.Comparison)
	}
	b.pairs[key] = nil
	over, under, blocks := Pair(b.Cells[subject], m, b.Cells[baseline], m)
	e, ok, err := b.ratio(over, under, stats.Level)
	if err != nil {
		b.Doubt.Say("%s: there is no ratio of %s to %s, because %v.", phrase.Capital(m.Label()), subject, baseline, err)
	}
	if !ok || err != nil {
		return nil
	}
	c := &model.Comparison{Subject: subject, Baseline: baseline, Metric: m, Ratio: quantity.Interval(e.Interval), Verdict: model.TooFew, Logs: make(map[int]float64)}
	for i, block := range blocks {
		c.Logs[block] = math.Log(over[i] / under[i])
	}
	if c.Ratio.N >= stats.MinimumTrials(stats.Level) {
		c.P, c.Effect, c.Verdict = &e.P, &e.Effect, model.Alike
		if excludesOne(c) {
			c.Verdict = model.Suggested
		}
	}
	if d, ok, err := stats.DetectableRatio(over, under, 1-b.level(stats.Level), Power); ok && err == nil {
		c.Detectable = &d
		if c.Verdict == model.Alike && d > model.NoisyAbove {
			c.Verdict = model.TooNoisy
		}
	}
	b.pairs[key] = c
	return c
}

func excludesOne(c *model.Comparison) bool { return stats.Interval(c.Ratio).Excludes(1) }

// ratio estimates over / under with an interval of this confidence. If the plan asks
// for a precision, the interval is wider, because its width decided when the run ended.
func (b *Judge) ratio(over, under []float64, level float64) (stats.Estimate, bool, error) {
	return b.looked(stats.Ratio(over, under, b.level(level)))
}

// difference is ratio, but estimates over − under.
func (b *Judge) difference(over, under []float64, level float64) (stats.Estimate, bool, error) {
	return b.looked(stats.Difference(over, under, b.level(level)))
}

// spread estimates the ratio of the coefficients of variation of over and under, with an interval of this confidence.
func (b *Judge) spread(over, under []float64, level float64) (stats.Estimate, bool, error) {
	iv, ok, err := stats.SpreadRatio(over, under, b.level(level))
	return b.looked(stats.Estimate{Interval: iv}, ok, err)
}

func (b *Judge) looked(e stats.Estimate, ok bool, err error) (stats.Estimate, bool, error) {
	if b.Plan.Stop.Precision > 0 {
		e = e.AfterLooks()
	}
	return e, ok, err
}

// level returns the confidence at which an interval must be computed. It is higher if
// the plan asks for a precision.
func (b *Judge) level(level float64) float64 {
	if b.Plan.Stop.Precision > 0 {
		return stats.Looked(level)
	}
	return level
}

// Pair returns the values of m in subject and of of in baseline, and their blocks in ascending
// order. It takes only blocks that have both.
func Pair(subject *figures.Cell, m sample.Metric, baseline *figures.Cell, of sample.Metric) (over, under []float64, blocks []int) {
	if subject == nil || baseline == nil {
		return nil, nil, nil
	}
	for i, block := range subject.Blocks[m] {
		if j, both := slices.BinarySearch(baseline.Blocks[of], block); both {
			over, under, blocks = append(over, subject.Values[m][i]), append(under, baseline.Values[of][j]), append(blocks, block)
		}
	}
	return over, under, blocks
}
