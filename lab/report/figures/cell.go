// Package figures computes the figures of each scenario from the trials that count, and the
// state of the machine during these trials.
package figures

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Cell has all samples and figures of one scenario.
type Cell struct {
	Scenario *suite.Scenario
	Row      *model.Scenario
	Samples  []sample.Sample  // every attempt, by block; in a block profiled trials last, then by attempt
	Tried    int              // blocks with an attempt without the profiler
	Counting []*sample.Sample // the last attempt that counts in each block, by block
	Values   map[sample.Metric][]float64
	Blocks   map[sample.Metric][]int // block of each value in Values
	// Summary holds every metric's interval.
	Summary map[sample.Metric]quantity.Interval
}

// Group returns the cells by scenario ID. It leaves out samples of scenarios that the
// plan does not have. Cells have the figures of these metrics, or of all metrics if
// none is given.
func Group(plan suite.Plan, samples []sample.Sample, metrics ...sample.Metric) map[string]*Cell {
	cells := make(map[string]*Cell, len(plan.Scenarios))
	for i := range plan.Scenarios {
		cells[plan.Scenarios[i].ID] = &Cell{Scenario: &plan.Scenarios[i], Samples: []sample.Sample{}}
	}
	for i := range samples {
		if c := cells[samples[i].Scenario]; c != nil {
			c.Samples = append(c.Samples, samples[i])
		}
	}
	for _, c := range cells {
		c.choose()
		c.collect(metrics)
	}
	return cells
}

// choose sorts the samples, and sets Counting and Tried.
func (c *Cell) choose() {
	slices.SortStableFunc(c.Samples, func(a, b sample.Sample) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), model.After(a.Profiled, b.Profiled), cmp.Compare(a.Attempt, b.Attempt))
	})
	before := math.MinInt
	all := make([]*sample.Sample, len(c.Samples))
	for i := range c.Samples {
		all[i] = &c.Samples[i]
		if !all[i].Profiled && all[i].Block != before {
			c.Tried++
			before = all[i].Block
		}
	}
	c.Counting = sample.Counting(all)
}

// collect sets Values, Blocks and Summary from the samples that count.
func (c *Cell) collect(metrics []sample.Metric) {
	c.Values, c.Blocks, c.Summary = make(map[sample.Metric][]float64), make(map[sample.Metric][]int), make(map[sample.Metric]quantity.Interval)
	for _, s := range c.Counting {
		for m, v := range s.Metrics {
			if metrics == nil || slices.Contains(metrics, m) {
				c.Values[m], c.Blocks[m] = append(c.Values[m], v), append(c.Blocks[m], s.Block)
			}
		}
	}
	for m, xs := range c.Values {
		c.Summary[m] = *quantity.MedianInterval(xs)
	}
}

// Limit returns the most frequent limit of the trials, and its share of the trials.
func (c *Cell) Limit() (most sample.Limit, share float64) {
	counts := make(map[sample.Limit]int)
	for _, s := range c.Counting {
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
	return most, float64(counts[most]) / float64(len(c.Counting))
}

// Emulated reports whether the scenario ran in VMs without KVM.
func (c *Cell) Emulated() bool {
	return slices.ContainsFunc(c.Counting, func(s *sample.Sample) bool { return slices.Contains(s.Warnings, sample.Emulated) })
}

// Full reports whether the CPUs of a side ("sender", "receiver") were busy during the whole
// window, with the node's work and the wire's.
func (c *Cell) Full(side string) bool {
	at := func(m sample.Metric) float64 { return c.Summary[m].Median }
	wire := at(sample.ReceiverFabricCores)
	if side == "sender" {
		wire = at(sample.FabricCores) - wire
	}
	node, percent := at(sample.Metric(side+"_cpu_cores")), at(sample.Metric(side+"_cpu_percent"))
	const saturated = 0.95 // wake-ups take the rest
	return percent > 0 && node+wire >= saturated*100*node/percent
}

// ValuesOf lists the values of m in the samples that have it.
func ValuesOf(samples []sample.Sample, m sample.Metric) (values []float64) {
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

// Latency returns the medians of the trials' percentiles; nil if the traffic has no
// latency.
func (c *Cell) Latency() *model.Latency {
	median := func(m sample.Metric) *float64 {
		if iv, ok := c.Summary[m]; ok {
			return &iv.Median
		}
		return nil
	}
	l := model.Latency{
		P50: median(sample.LatencyP50), P90: median(sample.LatencyP90), P99: median(sample.LatencyP99),
		P999: median(sample.LatencyP999), Max: median(sample.LatencyMax),
	}
	if l == (model.Latency{}) {
		return nil
	}
	return &l
}

// Take sets the figures of the row. Metrics without a field go into Metrics.
func Take(row *model.Scenario, c *Cell) {
	row.Retransmits = sum(c.Values[sample.Retransmits])
	row.Errors = sum(c.Values[sample.Errors])
	for m, iv := range c.Summary {
		info, _ := sample.Describe(m)
		if f := row.Field(m); f != nil {
			*f = &iv
		} else if !info.Is(sample.Summed) {
			if row.Metrics == nil {
				row.Metrics = make(map[sample.Metric]quantity.Interval, len(c.Summary))
			}
			row.Metrics[m] = iv
		}
	}
}

// Clean copies the samples. It leaves out tool outputs, and values that are not finite
// numbers. dirty maps each scenario to its metrics that lost a value. It only has values
// of trials that count.
func Clean(samples []sample.Sample) (list []sample.Sample, dirty map[string][]sample.Metric) {
	list, dirty = make([]sample.Sample, len(samples)), make(map[string][]sample.Metric)
	for i := range samples {
		s := &samples[i]
		list[i], _ = s.Clean()
		list[i].Outputs = nil
		for m := range s.Metrics {
			if _, finite := list[i].Metrics[m]; !finite {
				list[i].Profiles = nil // the profile no longer matches the figures
				if s.Counts() && !slices.Contains(dirty[s.Scenario], m) {
					dirty[s.Scenario] = append(dirty[s.Scenario], m)
				}
			}
		}
	}
	return list, dirty
}
