// Package hosts compares pairs of hosts: the matrix of each scenario, and its slow and
// asymmetric pairs.
package hosts

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// slowLimit is the difference from which a pair is slow or asymmetric, as a share.
// Smaller differences are usual between hosts of one kind.
const slowLimit = 0.10

// Matrices makes the matrices of a run between hosts.
func Matrices(run *sample.Run, plan *suite.Plan, samples []sample.Sample) []model.HostMatrix {
	m := plan.Matrix
	at := make(map[suite.HostPair]int, m.Len())
	for i := range m.Len() {
		at[m.Pair(i)] = i
	}
	list := make([]model.HostMatrix, len(plan.Scenarios))
	of := make(map[string]*model.HostMatrix, len(list))
	for i, sc := range plan.Scenarios {
		x := model.HostMatrix{Scenario: sc.ID, Title: sc.Title, Metric: sample.Throughput, Hosts: m.Hosts, Pairs: make([]model.PairFigure, m.Len())}
		if sc.Workload.Kind.Exchange() {
			x.Metric = sample.Transactions
		}
		for k := range x.Pairs {
			p := m.Pair(k)
			x.Pairs[k] = model.PairFigure{From: p.From, To: p.To, Why: cmp.Or(run.Skipped[sc.ID], run.Skipped[suite.PairID(sc.ID, p)])}
		}
		list[i] = x
		of[sc.ID] = &list[i]
	}
	for i := range samples {
		s := &samples[i]
		id, p, _ := suite.SplitPairID(s.Scenario)
		x, k, ok := of[id], at[p], p.From != ""
		if x == nil || !ok || s.Profiled || x.Pairs[k].HostPair() != p {
			continue
		}
		add(&x.Pairs[k], s, x.Metric)
	}
	for i := range list {
		complete(&list[i])
	}
	return list
}

// add takes the figure of a sample, or the reason why it does not count.
func add(f *model.PairFigure, s *sample.Sample, m sample.Metric) {
	v, ok := s.Metrics[m]
	switch {
	case !s.OK():
		f.Why = s.Failure.String()
	case len(s.Gates) > 0:
		f.Why = "rejected: " + rejected.Brief(s.Gates)
	case ok && v > 0 && !math.IsInf(v, 0):
		if f.Values == nil {
			f.Values = make(map[int]float64)
		}
		f.Values[s.Block] = v
	}
}

// complete makes the figures and judges the pairs.
func complete(x *model.HostMatrix) {
	byBlock := make(map[int][]float64)
	var medians []float64
	for k := range x.Pairs {
		f := &x.Pairs[k]
		var values []float64
		for _, block := range slices.Sorted(maps.Keys(f.Values)) {
			values = append(values, f.Values[block])
			byBlock[block] = append(byBlock[block], f.Values[block])
		}
		if f.Figure = quantity.MedianInterval(values); f.Figure != nil {
			medians = append(medians, f.Figure.Median)
		}
	}
	if len(medians) == 0 {
		return
	}
	x.Blocks = len(byBlock)
	x.Median, _, _ = stats.Median(medians)
	x.Reference = upperQuartile(medians)
	references := make(map[int]float64, len(byBlock))
	for block, values := range byBlock {
		references[block] = upperQuartile(values)
	}
	judgeSlow(x, references)
	judgeDirections(x)
}

// judgeSlow compares each pair with the upper quartile of all pairs.
func judgeSlow(x *model.HostMatrix, references map[int]float64) {
	var c claims
	for k := range x.Pairs {
		f := &x.Pairs[k]
		if f.Figure == nil {
			continue
		}
		f.Ratio = c.add(f.Values, references, func(p float64, claimed bool) { f.P, f.Slow = &p, claimed })
	}
	c.judge()
}

// judgeDirections compares each pair with the opposite direction.
func judgeDirections(x *model.HostMatrix) {
	at := make(map[suite.HostPair]*model.PairFigure, len(x.Pairs))
	for k := range x.Pairs {
		at[x.Pairs[k].HostPair()] = &x.Pairs[k]
	}
	var c claims
	for k := range x.Pairs {
		f := &x.Pairs[k]
		back := at[f.HostPair().Reverse()]
		if back == nil || f.Figure == nil || back.Figure == nil || f.Figure.Median > back.Figure.Median || f.Figure.Median == back.Figure.Median && f.From > f.To {
			continue // the slower direction is judged
		}
		f.Reverse = c.add(f.Values, back.Values, func(p float64, claimed bool) { f.ReverseP, f.Asymmetric = &p, claimed })
	}
	c.judge()
}

// claims are one family of claims that a value is below another by more than slowLimit.
type claims struct {
	rows    []map[int]float64 // by claim and block: logarithm of (1 − slowLimit) × other / value
	ratios  []*quantity.Interval
	results []func(p float64, claimed bool)
}

// add adds the claim that values are below others in their common blocks. It returns the
// ratio; nil if there is none. judge calls result if there are enough blocks.
func (c *claims) add(values, others map[int]float64, result func(p float64, claimed bool)) *quantity.Interval {
	var over, under []float64
	row := make(map[int]float64)
	for _, block := range slices.Sorted(maps.Keys(values)) {
		other, ok := others[block]
		if !ok {
			continue
		}
		over, under = append(over, values[block]), append(under, other)
		row[block] = math.Log((1 - slowLimit) * other / values[block])
	}
	e, ok, err := stats.Ratio(over, under, stats.Level)
	if !ok || err != nil {
		return nil
	}
	ratio := quantity.Interval(e.Interval)
	if len(over) >= stats.MinimumTrials(stats.Level) {
		c.rows, c.ratios, c.results = append(c.rows, row), append(c.ratios, &ratio), append(c.results, result)
	}
	return &ratio
}

// judge decides the claims. All of them together are wrong with a probability of 5 % at
// most (stats.Family). A claim also needs its whole interval beyond the limit.
func (c *claims) judge() {
	for i, p := range stats.Family(verdicts.ByBlock(c.rows)) {
		c.results[i](p, p <= verdicts.Alpha && c.ratios[i].High < 1-slowLimit)
	}
}

// upperQuartile returns the smallest value that at least three quarters of the values do
// not exceed.
func upperQuartile(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(3*len(sorted)+3)/4-1]
}
