package model

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/lab/condition"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// Build summarises a run. Scenarios have the plan's order. The figures of a scenario
// come from the last attempt that counts in each block (sample.Sample.Counts). Attempts
// that do not count are among the scenario's samples, and notes name them. Build does
// not change its arguments. The report shares their series and hops.
//
// The report shows the trials of one CPU distance: the distance that the run chose, or
// the distance with the most trials. Elsewhere has the trials at other distances. If a
// run adjusts its figures, all trials are adjusted to that distance.
func Build(run sample.Run, plan suite.Plan, samples []sample.Sample) *Report {
	if plan.Matrix != nil {
		return buildMatrix(run, plan, samples)
	}
	return build(run, plan, samples)
}

// build is Build for a plan whose scenarios are listed.
func build(run sample.Run, plan suite.Plan, samples []sample.Sample) *Report {
	from := source{run: run, plan: plan}
	samples, from.dirty = clean(samples)
	for i := range samples {
		from.blocks = max(from.blocks, samples[i].Block+1)
	}
	choice := condition.Choice(run.Options.CPUDistance)
	conditions, parts, shown := split(samples, choice)
	if run.Options.Adjusted {
		conditions.Adjusted, conditions.Stolen = true, shareOf(samples, func(p sample.Point) bool { return p.Steal > 0 })
		parts, shown = [][]sample.Sample{condition.Adjust(samples, choice)}, 0
	}
	conditions.observe(parts[shown])
	from.parts = parts
	r := from.report(shown)
	r.Conditions = conditions
	for i, list := range parts {
		if i != shown && len(list) > 0 {
			other := from.report(i)
			at, _, _ := stats.Median(valuesOf(list, sample.CPUDistance))
			r.Elsewhere = append(r.Elsewhere, Elsewhere{Distance: at, Scenarios: other.Scenarios, report: other})
		}
	}
	return r
}

// source has the data from which reports are built.
type source struct {
	run    sample.Run
	plan   suite.Plan
	parts  [][]sample.Sample // clean samples by CPU distance
	blocks int               // number of blocks with a trial
	// dirty maps each scenario to its metrics with a value that is not finite.
	dirty map[string][]sample.Metric
}

// clean copies the samples. It leaves out tool outputs, and values that are not finite
// numbers. dirty maps each scenario to its metrics that lost a value. It only has values
// of trials that count.
func clean(samples []sample.Sample) (list []sample.Sample, dirty map[string][]sample.Metric) {
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

// builder has the data that all functions for one report share.
type builder struct {
	source
	part  int // index in parts of the part that this report shows
	cells map[string]*cell
	rows  []Scenario // in the plan's order
	pairs map[pairKey]*Comparison
	doubt phrase.Lines // notes on gaps and doubts of this run
}

// report builds the report of one part.
func (from source) report(part int) *Report {
	plan := &from.plan
	b := &builder{source: from, part: part, cells: group(from.plan, from.parts[part]), pairs: make(map[pairKey]*Comparison)}
	for i := range plan.Scenarios {
		b.rows = append(b.rows, b.scenario(&plan.Scenarios[i]))
	}
	for i := range b.rows {
		b.cells[b.rows[i].ID].row = &b.rows[i]
	}
	r := &Report{
		Run: runInfo(from.run, from.plan), Scenarios: b.rows, Hypotheses: b.hypotheses(),
		systems: plan.Systems, pairs: plan.Comparisons, apart: make(map[suite.Comparison]string),
	}
	r.Comparisons, r.Ladders = b.comparisons(r.apart)
	r.Published, r.Tables = b.published(), b.publishedTables()
	r.Validity, r.Precision, r.Profiles = b.validity(), b.precision(), b.profiles()
	r.Findings = findings(r, false)
	r.Notes, r.Doubts = b.notes(), b.doubt
	return r
}

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
		return cmp.Or(cmp.Compare(a.Block, b.Block), after(a.Profiled, b.Profiled), cmp.Compare(a.Attempt, b.Attempt))
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

// after compares for sorting: false comes before true.
func after(a, b bool) int {
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

func runInfo(run sample.Run, plan suite.Plan) RunInfo {
	info := RunInfo{
		ID: run.ID, Name: run.Name, Note: run.Note, Suite: run.Suite, Title: cmp.Or(run.Title, plan.Title), Description: plan.Description, Short: plan.Short,
		Started: run.Started, Status: run.Status, Seed: run.Seed, Options: run.Options, Environment: run.Environment,
	}
	if !run.Finished.IsZero() {
		info.Finished = &run.Finished
	}
	return info
}

// emulatedMark is the end of the title of a scenario that was measured in VMs without
// KVM.
const emulatedMark = " [emulated CPU]"

// scenario returns the figures of one scenario.
func (b *builder) scenario(sc *suite.Scenario) Scenario {
	c := b.cells[sc.ID]
	row := Scenario{
		ID: sc.ID, Title: sc.Title, System: sc.System, Placement: string(sc.Placement), Tool: sc.Tool,
		Offload: string(sc.Fabric.Offload), Workload: sc.Workload, Fabric: sc.Fabric, Endpoint: sc.Endpoint, Pairs: sc.Pairs,
		Trials: len(c.ok), Failed: c.tried - len(c.ok), Skipped: b.run.Skipped[sc.ID],
		Samples: c.samples,
	}
	if slices.ContainsFunc(c.ok, func(s *sample.Sample) bool { return slices.Contains(s.Warnings, sample.Emulated) }) {
		row.Title += emulatedMark
	}
	row.Limit, row.LimitShare = c.limit()
	row.take(c)
	row.Latency = c.latency()
	row.Flags = c.flags()
	return row
}

// take sets the figures of the row. Metrics without a field go into Metrics.
func (row *Scenario) take(c *cell) {
	row.Retransmits = sum(c.values[sample.Retransmits])
	row.Errors = sum(c.values[sample.Errors])
	for m, iv := range c.summary {
		info, _ := sample.Describe(m)
		if f := row.field(m); f != nil {
			*f = &iv
		} else if !info.Is(sample.Summed) {
			if row.Metrics == nil {
				row.Metrics = make(map[sample.Metric]quantity.Interval, len(c.summary))
			}
			row.Metrics[m] = iv
		}
	}
}

// published pairs each published figure of the plan with the measured one. Measured is nil
// if there is no measured figure.
func (b *builder) published() []Published {
	var list []Published
	for _, p := range b.plan.Published {
		entry := Published{Published: p}
		if c := b.cells[p.Scenario]; c != nil {
			if iv, ok := c.summary[sample.Metric(p.Metric)]; ok {
				entry.Measured = &iv
			}
		}
		list = append(list, entry)
	}
	return list
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
