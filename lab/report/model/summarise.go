package model

import (
	"cmp"
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
