package report

import (
	"cmp"
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// Build summarises a run. Rows come in plan order. The figures of a scenario
// are those of the last attempt in each block, where that attempt yielded any;
// repeats and failures are counted and noted. The arguments are only read; the
// report shares their series and hops.
func Build(run sample.Run, plan suite.Plan, samples []sample.Sample) *Report {
	b := builder{run: run, plan: plan, cells: group(plan, samples)}
	r := &Report{
		Run:         runInfo(run, plan),
		Scenarios:   make([]Scenario, len(plan.Scenarios)),
		Comparisons: b.compare(),
	}
	for i := range plan.Scenarios {
		r.Scenarios[i] = b.scenario(&plan.Scenarios[i])
	}
	r.Published = b.published()
	r.Findings = findings(r, plan.Comparisons)
	r.Notes = b.notes(r)
	return r
}

// builder carries what the parts of one report have in common.
type builder struct {
	run   sample.Run
	plan  suite.Plan
	cells map[string]*cell
	doubt []string // notes that summarising gave rise to
}

// cell is everything measured of one scenario.
type cell struct {
	all    []*sample.Sample // every attempt, by block and attempt
	last   []*sample.Sample // the last attempt of each block, by block
	ok     []*sample.Sample // those of last that yielded figures
	values map[sample.Metric][]float64
	blocks map[sample.Metric][]int // the block of each of values
	// summary holds every metric's interval.
	summary map[sample.Metric]Interval
	dirty   []sample.Metric // metrics with a value that is not a finite number
}

// group sorts samples into cells. A sample of a scenario that the plan does not
// have is left out.
func group(plan suite.Plan, samples []sample.Sample) map[string]*cell {
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
		c.collect()
		c.summarise()
	}
	return cells
}

// choose finds the attempt of each block that counts.
func (c *cell) choose() {
	slices.SortStableFunc(c.all, func(a, b *sample.Sample) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Attempt, b.Attempt))
	})
	for i, s := range c.all {
		if i+1 < len(c.all) && c.all[i+1].Block == s.Block {
			continue
		}
		c.last = append(c.last, s)
		if s.OK() {
			c.ok = append(c.ok, s)
		}
	}
}

// collect turns the samples that count into one column a metric.
func (c *cell) collect() {
	c.values = make(map[sample.Metric][]float64)
	c.blocks = make(map[sample.Metric][]int)
	dirty := make(map[sample.Metric]bool)
	for _, s := range c.ok {
		for m, v := range s.Metrics {
			if !finite(v) {
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

func (c *cell) summarise() {
	c.summary = make(map[sample.Metric]Interval, len(c.values))
	for m, xs := range c.values {
		if iv, ok := interval(xs); ok {
			c.summary[m] = iv
		}
	}
}

func runInfo(run sample.Run, plan suite.Plan) RunInfo {
	info := RunInfo{
		ID: run.ID, Suite: run.Suite, Title: cmp.Or(run.Title, plan.Title), Description: plan.Description,
		Started: run.Started, Status: run.Status, Seed: run.Seed, Environment: run.Environment,
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
		Offload: string(sc.Fabric.Offload), Workload: sc.Workload, Fabric: sc.Fabric, Pairs: sc.Pairs,
		Trials: len(c.ok), Failed: len(c.last) - len(c.ok), Skipped: b.run.Skipped[sc.ID],
		Samples: withoutOutputs(c.all),
	}
	row.take(c)
	row.Latency = b.latency(sc.ID, c)
	return row
}

// take fills in the columns of the contract; the metrics that have none go
// into Metrics.
func (row *Scenario) take(c *cell) {
	for metric, column := range map[sample.Metric]**Interval{
		sample.Throughput: &row.Throughput, sample.Transactions: &row.Transactions,
		sample.SenderCPU: &row.SenderCPU, sample.ReceiverCPU: &row.ReceiverCPU,
		sample.SenderCPUPerByte: &row.SenderCPUPerByte, sample.ReceiverCPUPerByte: &row.ReceiverCPUPerByte,
		sample.PacketsPerSecond: &row.PacketsPerSecond,
	} {
		if iv, ok := c.summary[metric]; ok {
			*column = &iv
		}
	}
	row.Retransmits = sum(c.values[sample.Retransmits])
	row.Errors = sum(c.values[sample.Errors])
	for m, iv := range c.summary {
		if hasColumn(m) {
			continue
		}
		if row.Metrics == nil {
			row.Metrics = make(map[sample.Metric]Interval, len(c.summary))
		}
		row.Metrics[m] = iv
	}
}

// hasColumn reports whether the contract names m outside Metrics.
func hasColumn(m sample.Metric) bool {
	switch m {
	case sample.Throughput, sample.Transactions, sample.SenderCPU, sample.ReceiverCPU,
		sample.SenderCPUPerByte, sample.ReceiverCPUPerByte, sample.PacketsPerSecond,
		sample.Retransmits, sample.Errors, sample.LatencyP50, sample.LatencyP90,
		sample.LatencyP99, sample.LatencyP999, sample.LatencyMax:
		return true
	}
	return false
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

// interval summarises xs, which are finite.
func interval(xs []float64) (Interval, bool) {
	iv, ok, err := stats.MedianInterval(xs, stats.Level)
	return Interval(iv), ok && err == nil
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
