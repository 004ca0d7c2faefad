package model

import (
	"cmp"
	"math"
	"slices"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// HostMatrix has the main figure of one scenario between all pairs of hosts: throughput
// of streams, or transactions of request/response.
type HostMatrix struct {
	Scenario string        `json:"scenario"` // ID without hosts
	Title    string        `json:"title"`
	Metric   sample.Metric `json:"metric"`
	Hosts    []string      `json:"hosts"`
	Blocks   int           `json:"blocks"` // number of blocks with a figure
	// Median and Reference are the median and the upper quartile of the pairs' figures, in
	// the metric's unit. Pairs are compared with the upper quartile: a slow host slows
	// all of its pairs, and of three hosts these are four of six pairs.
	Median    float64      `json:"median"`
	Reference float64      `json:"reference"`
	Pairs     []PairFigure `json:"pairs"` // in the order of the plan's matrix
}

// PairFigure is the figure from one host to another.
type PairFigure struct {
	From   string             `json:"from"`
	To     string             `json:"to"`
	Figure *quantity.Interval `json:"figure,omitempty"` // nil if it was not measured
	Why    string             `json:"why,omitempty"`    // why attempts of the pair do not count, the last reason
	// Ratio is the figure over the upper quartile of all pairs, within blocks.
	Ratio *quantity.Interval `json:"ratio,omitempty"`
	// Slow: the figure is below the upper quartile by more than 10 %. P is the corrected
	// p-value of this claim; nil with too few blocks.
	Slow bool     `json:"slow,omitempty"`
	P    *float64 `json:"p_adjusted,omitempty"`
	// Reverse is the figure over that of the opposite direction, within blocks.
	Reverse *quantity.Interval `json:"reverse_ratio,omitempty"`
	// Asymmetric: the figure is below that of the opposite direction by more than 10 %.
	// ReverseP is the corrected p-value of this claim. The slower direction has it.
	Asymmetric bool     `json:"asymmetric,omitempty"`
	ReverseP   *float64 `json:"reverse_p_adjusted,omitempty"`

	values map[int]float64 // by block
}

// HostPair returns the hosts of the figure.
func (f *PairFigure) HostPair() suite.HostPair { return suite.HostPair{From: f.From, To: f.To} }

// slowLimit is the difference from which a pair is slow or asymmetric, as a share.
// Smaller differences are usual between hosts of one kind.
const slowLimit = 0.10

// hostMatrices makes the matrices of a run between hosts.
func hostMatrices(run *sample.Run, plan *suite.Plan, samples []sample.Sample) []HostMatrix {
	m := plan.Matrix
	at := make(map[suite.HostPair]int, m.Len())
	for i := range m.Len() {
		at[m.Pair(i)] = i
	}
	list := make([]HostMatrix, len(plan.Scenarios))
	of := make(map[string]*HostMatrix, len(list))
	for i, sc := range plan.Scenarios {
		x := HostMatrix{Scenario: sc.ID, Title: sc.Title, Metric: sample.Throughput, Hosts: m.Hosts, Pairs: make([]PairFigure, m.Len())}
		if sc.Workload.Kind.Exchange() {
			x.Metric = sample.Transactions
		}
		for k := range x.Pairs {
			p := m.Pair(k)
			x.Pairs[k] = PairFigure{From: p.From, To: p.To, Why: cmp.Or(run.Skipped[sc.ID], run.Skipped[suite.PairID(sc.ID, p)])}
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
		x.Pairs[k].add(s, x.Metric)
	}
	for i := range list {
		list[i].complete()
	}
	return list
}

// add takes the figure of a sample, or the reason why it does not count.
func (f *PairFigure) add(s *sample.Sample, m sample.Metric) {
	v, ok := s.Metrics[m]
	switch {
	case !s.OK():
		f.Why = s.Failure.String()
	case len(s.Gates) > 0:
		f.Why = "rejected: " + Brief(s.Gates)
	case ok && v > 0 && !math.IsInf(v, 0):
		if f.values == nil {
			f.values = make(map[int]float64)
		}
		f.values[s.Block] = v
	}
}

// complete makes the figures and judges the pairs.
func (x *HostMatrix) complete() {
	byBlock := make(map[int][]float64)
	var medians []float64
	for k := range x.Pairs {
		f := &x.Pairs[k]
		var values []float64
		for _, block := range blocksOf(f.values) {
			values = append(values, f.values[block])
			byBlock[block] = append(byBlock[block], f.values[block])
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
	x.judgeSlow(references)
	x.judgeDirections()
}

// judgeSlow compares each pair with the upper quartile of all pairs.
func (x *HostMatrix) judgeSlow(references map[int]float64) {
	var c claims
	for k := range x.Pairs {
		f := &x.Pairs[k]
		if f.Figure == nil {
			continue
		}
		f.Ratio = c.add(f.values, references, func(p float64, claimed bool) { f.P, f.Slow = &p, claimed })
	}
	c.judge()
}

// judgeDirections compares each pair with the opposite direction.
func (x *HostMatrix) judgeDirections() {
	at := make(map[suite.HostPair]*PairFigure, len(x.Pairs))
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
		f.Reverse = c.add(f.values, back.values, func(p float64, claimed bool) { f.ReverseP, f.Asymmetric = &p, claimed })
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
	for _, block := range blocksOf(values) {
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
	for i, p := range stats.Family(inBlocks(c.rows)) {
		c.results[i](p, p <= Alpha && c.ratios[i].High < 1-slowLimit)
	}
}

// inBlocks returns the values as lists over the same blocks. A value that a row lacks is
// NaN.
func inBlocks(rows []map[int]float64) [][]float64 {
	all := make(map[int]float64)
	for _, row := range rows {
		for block := range row {
			all[block] = 0
		}
	}
	blocks := blocksOf(all)
	list := make([][]float64, len(rows))
	for i, row := range rows {
		for _, block := range blocks {
			v, ok := row[block]
			if !ok {
				v = math.NaN()
			}
			list[i] = append(list[i], v)
		}
	}
	return list
}

// blocksOf lists the blocks that have a value, in ascending order.
func blocksOf(values map[int]float64) []int {
	blocks := make([]int, 0, len(values))
	for block := range values {
		blocks = append(blocks, block)
	}
	slices.Sort(blocks)
	return blocks
}

// upperQuartile returns the smallest value that at least three quarters of the values do
// not exceed.
func upperQuartile(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(3*len(sorted)+3)/4-1]
}
