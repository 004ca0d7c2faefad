// Package report makes the report of a stored run (Build) and lists its sections (Document).
// Its packages have one concept each: figures, rejected trials, verdicts, published figures,
// pairs of hosts, profiles, tables and sentences. The packages text, markdown, html and
// export write the result.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/condition"
	"windtunnel/lab/report/figures"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/profiles"
	"windtunnel/lab/report/published"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/report/verdicts"
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
func Build(run sample.Run, plan suite.Plan, samples []sample.Sample) *model.Report {
	if plan.Matrix != nil {
		return buildMatrix(run, plan, samples)
	}
	return build(run, plan, samples)
}

// build is Build for a plan whose scenarios are listed.
func build(run sample.Run, plan suite.Plan, samples []sample.Sample) *model.Report {
	from := verdicts.Source{Run: run, Plan: plan}
	samples, from.Dirty = figures.Clean(samples)
	from.Measured = samples
	for i := range samples {
		from.Blocks = max(from.Blocks, samples[i].Block+1)
	}
	choice := condition.Choice(run.Options.CPUDistance)
	conditions, parts, shown := figures.Split(samples, choice)
	if run.Options.Adjusted {
		conditions.Adjusted, conditions.Stolen = true, figures.ShareOf(samples, func(p sample.Point) bool { return p.Steal > 0 })
		parts, shown = [][]sample.Sample{condition.Adjust(samples, choice)}, 0
	}
	figures.Observe(&conditions, parts[shown])
	from.Parts = parts
	r := part(from, shown)
	r.Conditions = conditions
	for i, list := range parts {
		if i != shown && len(list) > 0 {
			other := part(from, i)
			at, _, _ := stats.Median(figures.ValuesOf(list, sample.CPUDistance))
			r.Elsewhere = append(r.Elsewhere, model.Elsewhere{Distance: at, Scenarios: other.Scenarios, Report: other})
		}
	}
	return r
}

// part builds the report of one part.
func part(from verdicts.Source, part int) *model.Report {
	plan := &from.Plan
	b := &verdicts.Judge{Source: from, Part: part, Cells: figures.Group(from.Plan, from.Parts[part])}
	for i := range plan.Scenarios {
		b.Rows = append(b.Rows, scenario(b, &plan.Scenarios[i]))
	}
	for i := range b.Rows {
		b.Cells[b.Rows[i].ID].Row = &b.Rows[i]
	}
	r := &model.Report{
		Run: runInfo(from.Run, from.Plan), Scenarios: b.Rows, Hypotheses: b.Hypotheses(),
		Systems: plan.Systems, Pairs: plan.Comparisons, Apart: make(map[suite.Comparison]string),
	}
	r.Comparisons, r.Ladders = b.Comparisons(r.Apart)
	r.Published, r.Tables = published.Figures(b), published.Tables(b)
	r.Validity, r.Precision, r.Profiles = rejected.Count(plan, from.Run.Skipped, slices.Concat(b.Parts...)), b.Precision(), profiles.Of(b)
	r.Findings = sentences.Findings(r, false)
	r.Notes, r.Doubts = notes(b), b.Doubt
	return r
}

func runInfo(run sample.Run, plan suite.Plan) model.RunInfo {
	info := model.RunInfo{
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
func scenario(b *verdicts.Judge, sc *suite.Scenario) model.Scenario {
	c := b.Cells[sc.ID]
	row := model.Scenario{
		ID: sc.ID, Title: sc.Title, System: sc.System, Placement: string(sc.Placement), Tool: sc.Tool,
		Offload: string(sc.Fabric.Offload), Workload: sc.Workload, Fabric: sc.Fabric, Endpoint: sc.Endpoint, Pairs: sc.Pairs,
		Trials: len(c.Counting), Failed: c.Tried - len(c.Counting), Skipped: b.Run.Skipped[sc.ID],
		Samples: c.Samples,
	}
	_, row.Elsewhere = b.CommonBlocks(sc.ID, sc.ID)
	if c.Emulated() {
		row.Title += emulatedMark
	}
	row.Limit, row.LimitShare = c.Limit()
	b.Widen(sc.ID)
	figures.Take(&row, c)
	row.Latency = c.Latency()
	row.Flags = rejected.Flags(c)
	return row
}

// notes returns remarks on the figures: first the suite's notes, then the gaps and
// doubts of this run.
func notes(b *verdicts.Judge) []string {
	notes := phrase.Lines(slices.Clone(b.Plan.Notes))
	notes.SayIf(b.Plan.Short, "This is the short form of the suite: fewer or shorter trials, and it may leave scenarios out.")
	notes.SayIf(b.Run.Status == sample.Running, "The run has not finished. The report has its figures so far.")
	notes.SayIf(b.Run.Status == sample.Stopped, "The run was interrupted: blocks may lack scenarios.")
	notes.SayIf(b.Run.Status == sample.Empty, "The run ended, and no trial counts.")
	need := stats.MinimumTrials(stats.Level)
	var emulated, unpinned, few []string
	for i := range b.Rows {
		s := &b.Rows[i]
		if strings.HasSuffix(s.Title, emulatedMark) {
			emulated = append(emulated, s.ID)
		}
		if s.Trials > 0 && s.Fabric.Unpinned {
			unpinned = append(unpinned, s.ID)
		}
		if s.Trials > 0 && s.Trials < need { // the interval has the lowest and the highest trial
			few = append(few, fmt.Sprintf("%s %d", s.ID, s.Trials))
		}
	}
	notes.SayIf(emulated != nil, "%s: %s. Compare them with each other only.", phrase.Capital(sample.Emulated), phrase.And(emulated))
	notes.SayIf(unpinned != nil, "Programs of each node ran on the CPUs of all nodes (pinned: false), so CPU figures of a side, limits and profiles are absent: %s.", phrase.And(unpinned))
	notes.SayIf(few != nil, "A 95 %% interval needs %d trials. Brackets hold the lowest and the highest trial of scenarios with fewer: %s.", need, sentences.Several(few))
	for i := range b.Rows {
		dirty := b.Dirty[b.Rows[i].ID]
		slices.Sort(dirty)
		notes.SayIf(dirty != nil, "%s: values that are not finite numbers are left out (%s).", b.Rows[i].ID, strings.Trim(fmt.Sprint(dirty), "[]"))
	}
	return append(notes, b.Doubt...)
}
