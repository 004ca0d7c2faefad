package model

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// Build summarises a run. Rows come in plan order. The figures of a scenario
// are those of the last attempt in each block that counts (sample.Sample.Counts);
// what failed, or was measured under conditions that were not valid, is counted
// and noted, and stands among the row's samples. The arguments are only read;
// the report shares their series and hops.
//
// The report shows the trials of one CPU distance: the run's choice, else the one
// of most trials.
// Elsewhere has the others. A run that adjusts its figures adjusts all trials to
// that distance.
func Build(run sample.Run, plan suite.Plan, samples []sample.Sample) *Report {
	choice := condition.Choice(run.Options.CPUDistance)
	conditions, parts, shown := split(samples, choice)
	if run.Options.Adjusted {
		conditions.adjusted(samples)
		parts, shown = [][]sample.Sample{condition.Adjust(samples, choice)}, 0
	}
	conditions.observe(parts[shown])
	r := build(run, plan, parts, shown, blocksOf(samples))
	r.Conditions = conditions
	for i, list := range parts {
		if i == shown || len(list) == 0 {
			continue
		}
		other := build(run, plan, parts, i, 0)
		at, _, _ := stats.Median(valuesOf(list, sample.CPUDistance))
		r.Elsewhere = append(r.Elsewhere, Elsewhere{Distance: at, Scenarios: other.Scenarios, report: other})
	}
	return r
}

// blocksOf returns the number of blocks with a trial.
func blocksOf(samples []sample.Sample) (n int) {
	for i := range samples {
		n = max(n, samples[i].Block+1)
	}
	return n
}

// build summarises parts[shown], the samples at one CPU distance. blocks is the
// number of blocks of the whole run.
func build(run sample.Run, plan suite.Plan, parts [][]sample.Sample, shown, blocks int) *Report {
	samples := parts[shown]
	b := newBuilder(run, plan, samples)
	b.blocks, b.parts = blocks, parts
	r := &Report{
		Run:        runInfo(run, plan),
		Scenarios:  make([]Scenario, len(plan.Scenarios)),
		Hypotheses: b.hypotheses(),
		systems:    plan.Systems,
		pairs:      plan.Comparisons,
		apart:      make(map[suite.Comparison]string),
	}
	r.Comparisons, r.Ladders = b.judged(r.apart)
	for i := range plan.Scenarios {
		r.Scenarios[i] = b.scenario(&plan.Scenarios[i])
	}
	r.Published = b.published()
	r.Tables = b.publishedTables()
	r.Validity = b.validity()
	r.Precision = b.precision(samples)
	r.Profiles = b.profiles()
	r.Findings = findings(r)
	r.Notes, r.Doubts = b.notes(r), b.doubt
	return r
}

// builder carries what the parts of one report have in common.
type builder struct {
	blocks int               // number of the run's blocks
	parts  [][]sample.Sample // the run's samples by CPU distance
	run    sample.Run
	plan   suite.Plan
	cells  map[string]*cell
	// scenarios are the plan's by id, and pairs what two of them have in common.
	scenarios map[string]*suite.Scenario
	pairs     map[pairKey]*Comparison
	doubt     []string // notes that summarising gave rise to
}

func newBuilder(run sample.Run, plan suite.Plan, samples []sample.Sample) *builder {
	b := &builder{
		run: run, plan: plan, cells: group(plan, samples),
		scenarios: make(map[string]*suite.Scenario, len(plan.Scenarios)),
		pairs:     make(map[pairKey]*Comparison),
	}
	for i := range plan.Scenarios {
		b.scenarios[plan.Scenarios[i].ID] = &plan.Scenarios[i]
	}
	return b
}

// cell is everything measured of one scenario.
type cell struct {
	all    []*sample.Sample // every attempt, by block; within it those beside the profiler last, then by attempt
	tried  int              // blocks with an attempt without the profiler
	ok     []*sample.Sample // the last attempt that counts of each block that has one, by block
	values map[sample.Metric][]float64
	blocks map[sample.Metric][]int // the block of each of values
	// summary holds every metric's interval.
	summary map[sample.Metric]Interval
	dirty   []sample.Metric // metrics with a value that is not a finite number
}

// group sorts samples into cells. A sample of a scenario that the plan does not
// have is left out.
func group(plan suite.Plan, samples []sample.Sample) map[string]*cell {
	cells := sorted(plan, samples)
	for _, c := range cells {
		c.collect()
		c.summarise()
	}
	return cells
}

// sorted gives each cell its samples and finds those that count.
func sorted(plan suite.Plan, samples []sample.Sample) map[string]*cell {
	cells := make(map[string]*cell, len(plan.Scenarios))
	for i := range plan.Scenarios {
		cells[plan.Scenarios[i].ID] = &cell{}
	}
	for i := range samples {
		if c := cells[samples[i].Scenario]; c != nil {
			c.all = append(c.all, &samples[i])
		}
	}
	for _, c := range cells {
		c.choose()
	}
	return cells
}

// choose finds the attempt of each block that counts.
func (c *cell) choose() {
	slices.SortStableFunc(c.all, func(a, b *sample.Sample) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(after(a.Profiled), after(b.Profiled)), cmp.Compare(a.Attempt, b.Attempt))
	})
	before := math.MinInt
	for _, s := range c.all {
		if !s.Profiled && s.Block != before {
			c.tried++
			before = s.Block
		}
	}
	c.ok = sample.Counting(c.all)
}

// after orders what is so behind what is not.
func after(so bool) int {
	if so {
		return 1
	}
	return 0
}

// collect turns the samples that count into one column a metric.
func (c *cell) collect() {
	c.values = make(map[sample.Metric][]float64)
	c.blocks = make(map[sample.Metric][]int)
	dirty := make(map[sample.Metric]bool)
	for _, s := range c.ok {
		for m, v := range s.Metrics {
			if !units.Finite(v) {
				dirty[m] = true
				continue
			}
			c.values[m] = append(c.values[m], v)
			c.blocks[m] = append(c.blocks[m], s.Block)
		}
	}
	for m := range dirty {
		c.dirty = append(c.dirty, m)
	}
	slices.Sort(c.dirty)
}

// limit is what held most trials back, and the share of them.
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

func (c *cell) summarise() {
	c.summary = make(map[sample.Metric]Interval, len(c.values))
	for m, xs := range c.values {
		if iv := MedianInterval(xs); iv != nil {
			c.summary[m] = *iv
		}
	}
}

func runInfo(run sample.Run, plan suite.Plan) RunInfo {
	info := RunInfo{
		ID: run.ID, Suite: run.Suite, Title: cmp.Or(run.Title, plan.Title), Description: plan.Description, Short: plan.Short,
		Started: run.Started, Status: run.Status, Seed: run.Seed, Options: run.Options, Environment: run.Environment,
	}
	if !run.Finished.IsZero() {
		info.Finished = &run.Finished
	}
	return info
}

// scenario makes one row.
func (b *builder) scenario(sc *suite.Scenario) Scenario {
	c := b.cells[sc.ID]
	row := Scenario{
		ID: sc.ID, Title: sc.Title, System: sc.System, Placement: string(sc.Placement), Tool: sc.Tool,
		Offload: string(sc.Fabric.Offload), Workload: sc.Workload, Fabric: sc.Fabric, Endpoint: sc.Endpoint, Pairs: sc.Pairs,
		Trials: len(c.ok), Failed: c.tried - len(c.ok), Skipped: b.run.Skipped[sc.ID],
		Samples: withoutOutputs(c.all),
	}
	if c.emulated() {
		row.Title += emulatedMark
	}
	row.Limit, row.LimitShare = c.limit()
	row.take(c)
	row.Latency = c.latency()
	row.Flags = c.flags()
	return row
}

// take fills in the figures of the contract; the metrics that have no field go
// into Metrics.
func (row *Scenario) take(c *cell) {
	row.Retransmits = sum(c.values[sample.Retransmits])
	row.Errors = sum(c.values[sample.Errors])
	for m, iv := range c.summary {
		info, _ := sample.Describe(m)
		if f := row.field(m); f != nil {
			*f = &iv
		} else if !info.Is(sample.Summed) {
			if row.Metrics == nil {
				row.Metrics = make(map[sample.Metric]Interval, len(c.summary))
			}
			row.Metrics[m] = iv
		}
	}
}

// published puts the plan's figures beside the measured ones.
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

// MedianInterval is the median of xs, which are finite, with its interval; nil of
// none.
func MedianInterval(xs []float64) *Interval {
	iv, ok, err := stats.MedianInterval(xs, stats.Level)
	if !ok || err != nil {
		return nil
	}
	return (*Interval)(&iv)
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
