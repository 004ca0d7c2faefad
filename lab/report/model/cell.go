package model

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// cell has all samples and figures of one scenario.
type cell struct {
	scenario *suite.Scenario
	row      *Scenario
	samples  []sample.Sample  // every attempt, by block; in a block profiled trials last, then by attempt
	tried    int              // blocks with an attempt without the profiler
	ok       []*sample.Sample // the last attempt that counts in each block, by block
	values   map[sample.Metric][]float64
	blocks   map[sample.Metric][]int // block of each value in values
	// summary holds every metric's interval.
	summary map[sample.Metric]quantity.Interval
}

// group returns the cells by scenario ID. It leaves out samples of scenarios that the
// plan does not have. Cells have the figures of these metrics, or of all metrics if
// none is given.
func group(plan suite.Plan, samples []sample.Sample, metrics ...sample.Metric) map[string]*cell {
	cells := make(map[string]*cell, len(plan.Scenarios))
	for i := range plan.Scenarios {
		cells[plan.Scenarios[i].ID] = &cell{scenario: &plan.Scenarios[i], samples: []sample.Sample{}}
	}
	for i := range samples {
		if c := cells[samples[i].Scenario]; c != nil {
			c.samples = append(c.samples, samples[i])
		}
	}
	for _, c := range cells {
		c.choose()
		c.collect(metrics)
	}
	return cells
}

// choose sorts the samples, and sets ok and tried.
func (c *cell) choose() {
	slices.SortStableFunc(c.samples, func(a, b sample.Sample) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), After(a.Profiled, b.Profiled), cmp.Compare(a.Attempt, b.Attempt))
	})
	before := math.MinInt
	all := make([]*sample.Sample, len(c.samples))
	for i := range c.samples {
		all[i] = &c.samples[i]
		if !all[i].Profiled && all[i].Block != before {
			c.tried++
			before = all[i].Block
		}
	}
	c.ok = sample.Counting(all)
}

// After compares for sorting: false comes before true.
func After(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// collect sets values, blocks and summary from the samples that count.
func (c *cell) collect(metrics []sample.Metric) {
	c.values, c.blocks, c.summary = make(map[sample.Metric][]float64), make(map[sample.Metric][]int), make(map[sample.Metric]quantity.Interval)
	for _, s := range c.ok {
		for m, v := range s.Metrics {
			if metrics == nil || slices.Contains(metrics, m) {
				c.values[m], c.blocks[m] = append(c.values[m], v), append(c.blocks[m], s.Block)
			}
		}
	}
	for m, xs := range c.values {
		c.summary[m] = *quantity.MedianInterval(xs)
	}
}

// limit returns the most frequent limit of the trials, and its share of the trials.
func (c *cell) limit() (most sample.Limit, share float64) {
	counts := make(map[sample.Limit]int)
	for _, s := range c.ok {
		counts[s.Limit]++
	}
	for _, l := range slices.Sorted(maps.Keys(counts)) {
		if l != "" && counts[l] > counts[most] || most == "" {
			most = l
		}
	}
	if most == "" {
		return "", 0
	}
	return most, float64(counts[most]) / float64(len(c.ok))
}

// valuesOf lists the values of m in the samples that have it.
func valuesOf(samples []sample.Sample, m sample.Metric) (values []float64) {
	for i := range samples {
		if v, ok := samples[i].Metrics[m]; ok {
			values = append(values, v)
		}
	}
	return values
}

func sum(xs []float64) *float64 {
	if len(xs) == 0 {
		return nil
	}
	total := 0.0
	for _, x := range xs {
		total += x
	}
	return &total
}

// Percentiles lists the percentiles of latency that reports show, in ascending
// order.
var Percentiles = []struct {
	Metric sample.Metric
	Name   string
}{
	{sample.LatencyP50, "p50"}, {sample.LatencyP90, "p90"}, {sample.LatencyP99, "p99"},
	{sample.LatencyP999, "p99.9"}, {sample.LatencyMax, "max"},
}

// latency returns the medians of the trials' percentiles; nil if the traffic has no
// latency.
func (c *cell) latency() *Latency {
	median := func(m sample.Metric) *float64 {
		if iv, ok := c.summary[m]; ok {
			return &iv.Median
		}
		return nil
	}
	l := Latency{
		P50: median(sample.LatencyP50), P90: median(sample.LatencyP90), P99: median(sample.LatencyP99),
		P999: median(sample.LatencyP999), Max: median(sample.LatencyMax),
	}
	if l == (Latency{}) {
		return nil
	}
	return &l
}
