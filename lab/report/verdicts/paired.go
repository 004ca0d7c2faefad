package verdicts

import (
	"math"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/lab/condition"
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

// Paired compares one metric of two scenarios, over the blocks that both have. All
// parts of a report share one comparison for each pair and metric. settle sets its
// verdict. If there is no ratio, Paired returns nil and adds the reason to the doubts.
func (b *Judge) Paired(subject, baseline string, m sample.Metric) *model.Comparison {
	key := pair{subject, m, baseline, m}
	if known, ok := b.pairs[key]; ok {
		return known
	}
	if b.pairs == nil {
		b.pairs = make(map[pair]*model.Comparison)
	}
	b.pairs[key] = nil
	over, under, blocks := key.values(b.Cells)
	e, jackknifeP, ok, err := b.estimate(ratio, key, stats.Level)
	if err != nil {
		b.Doubt.Say("%s: there is no ratio of %s to %s, because %v.", phrase.Capital(m.Label()), subject, baseline, err)
	}
	if !ok || err != nil {
		return nil
	}
	c := &model.Comparison{Subject: subject, Baseline: baseline, Metric: m, Ratio: quantity.Interval(e.Interval), Verdict: model.TooFew, Logs: make(map[int]float64), JackknifeP: jackknifeP}
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

// estimator estimates a statistic of pairs of values, such as their ratio. widen widens the interval of the estimate;
// see stats.Estimate.WidenedRatio.
type estimator struct {
	estimate func(over, under []float64, level float64) (stats.Estimate, bool, error)
	widen    func(e stats.Estimate, leaveOneOut []float64, level float64) (stats.Estimate, float64)
}

var (
	ratio      = estimator{stats.Ratio, stats.Estimate.WidenedRatio}
	difference = estimator{stats.Difference, stats.Estimate.WidenedDifference}
	spread     = estimator{func(over, under []float64, level float64) (stats.Estimate, bool, error) {
		iv, ok, err := stats.SpreadRatio(over, under, level)
		return stats.Estimate{Interval: iv}, ok, err
	}, stats.Estimate.WidenedRatio}
	// value estimates the median of one figure: both values of a pair are the same.
	value = estimator{func(figure, _ []float64, level float64) (stats.Estimate, bool, error) {
		iv, ok, err := stats.MedianInterval(figure, level)
		return stats.Estimate{Interval: iv}, ok, err
	}, stats.Estimate.WidenedDifference}
)

// estimate compares the figures of a pair, over the blocks that have both, with an interval of this confidence. If the
// plan asks for a precision, the interval is wider, because its width decided when the run ended.
//
// One regression adjusts all figures of a scenario, so they share its error. For adjusted figures the interval therefore
// contains the jackknife's interval, and jackknifeP is the jackknife's p-value. For other figures jackknifeP is 0.
func (b *Judge) estimate(by estimator, of pair, level float64) (e stats.Estimate, jackknifeP float64, ok bool, err error) {
	level = b.level(level)
	over, under, blocks := of.values(b.Cells)
	if e, ok, err = by.estimate(over, under, level); !ok || err != nil {
		return e, 0, ok, err
	}
	if estimates := b.leaveOneOut(by, of, over, under, blocks); estimates != nil {
		e, jackknifeP = by.widen(e, estimates, level)
	}
	if b.Plan.Stop.Precision > 0 {
		e, jackknifeP = e.AfterLooks(), stats.AfterLooks(jackknifeP)
	}
	return e, jackknifeP, true, nil
}

// Widen widens the intervals of a scenario's figures if the run adjusts its figures: the intervals then contain the
// error of the regression.
func (b *Judge) Widen(id string) {
	if !b.Run.Options.Adjusted {
		return
	}
	summary := b.Cells[id].Summary
	for m := range summary {
		if e, _, ok, err := b.estimate(value, pair{id, m, id, m}, stats.Level); ok && err == nil {
			summary[m] = quantity.Interval(e.Interval)
		}
	}
}

// leaveOneOut returns one estimate for each block. It is computed without the block, from figures that are adjusted
// without the block. leaveOneOut returns nil if the pair's figures are not adjusted, or with fewer than 3 blocks.
func (b *Judge) leaveOneOut(by estimator, of pair, over, under []float64, blocks []int) (estimates []float64) {
	if !b.Run.Options.Adjusted || len(blocks) < 3 {
		return nil
	}
	adjusted := false
	for i, block := range blocks {
		x, y, _ := of.values(b.cellsWithout(block))
		e, ok, err := by.estimate(x, y, stats.Level)
		if !ok || err != nil {
			return nil
		}
		estimates = append(estimates, e.Median)
		adjusted = adjusted || !slices.Equal(x, slices.Concat(over[:i], over[i+1:])) || !slices.Equal(y, slices.Concat(under[:i], under[i+1:]))
	}
	if !adjusted {
		return nil
	}
	return estimates
}

// cellsWithout returns the cells of the run without a block. The adjustment is repeated for the other blocks.
func (b *Judge) cellsWithout(block int) map[string]*figures.Cell {
	if b.left == nil {
		b.left = make(map[int]map[string]*figures.Cell)
	}
	if b.left[block] == nil {
		rest := slices.DeleteFunc(slices.Clone(b.Measured), func(s sample.Sample) bool { return s.Block == block })
		b.left[block] = figures.Group(b.Plan, condition.Adjust(rest, condition.Choice(b.Run.Options.CPUDistance)))
	}
	return b.left[block]
}

// level returns the confidence at which an interval must be computed. It is higher if
// the plan asks for a precision.
func (b *Judge) level(level float64) float64 {
	if b.Plan.Stop.Precision > 0 {
		return stats.Looked(level)
	}
	return level
}

// pair names the two figures of a comparison. m is the metric of the subject, and of is the metric of the baseline;
// usually both are the same.
type pair struct {
	subject  string
	m        sample.Metric
	baseline string
	of       sample.Metric
}

func (p pair) values(cells map[string]*figures.Cell) (over, under []float64, blocks []int) {
	return Pair(cells[p.subject], p.m, cells[p.baseline], p.of)
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
