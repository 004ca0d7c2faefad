// Package verdicts compares scenarios within blocks: ratios, the steps of ladders,
// hypotheses, and the precision that was reached. It decides which differences a report may
// claim.
package verdicts

import (
	"fmt"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/figures"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Judge has the data of one report that its comparisons, ladders, hypotheses and published
// figures share.
type Judge struct {
	Source
	Part  int // index in Parts of the part that this report shows
	Cells map[string]*figures.Cell
	Rows  []model.Scenario                 // in the plan's order
	pairs map[pair]*model.Comparison       // by Paired
	left  map[int]map[string]*figures.Cell // by block: the result of cellsWithout
	Doubt phrase.Lines                     // notes on gaps and doubts of this run
}

// Source has the data from which reports are built.
type Source struct {
	Run      sample.Run
	Plan     suite.Plan
	Measured []sample.Sample   // clean samples, not adjusted
	Parts    [][]sample.Sample // clean samples, one part for each CPU distance; if the figures are adjusted, one part with all of them
	Blocks   int               // number of blocks with a trial
	// Dirty maps each scenario to its metrics with a value that is not finite.
	Dirty map[string][]sample.Metric
}

// Compared lists the metrics that comparisons have a ratio of.
var Compared = []sample.Metric{
	sample.Throughput, sample.Capacity, sample.Transactions, sample.LatencyP50, sample.LatencyP99, sample.LoadThroughput,
	sample.SenderCPU, sample.ReceiverCPU, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte,
	sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket,
}

// compare makes the plan's comparisons: one for each metric that both scenarios have.
// titles has the plan's title of each. If two scenarios have figures but cannot be
// compared, compare adds the reason to apart.
func (b *Judge) compare(apart map[suite.Comparison]string) (list []*model.Comparison, titles []string) {
	var uncompared phrase.Lines
	for _, c := range b.Plan.Comparisons {
		subject, baseline := b.Cells[c.Subject], b.Cells[c.Baseline]
		if subject == nil || baseline == nil {
			b.Doubt.Say("The comparison of %s with %s names a scenario that the plan does not have.", c.Subject, c.Baseline)
			continue
		}
		if why := b.WithoutCommonBlock(c.Subject, c.Baseline); why != "" {
			apart[suite.Comparison{Subject: c.Subject, Baseline: c.Baseline}] = why
			b.Doubt.Say("%s, so they cannot be compared.", why)
		} else if shown, elsewhere := b.CommonBlocks(c.Subject, c.Baseline); elsewhere > 0 {
			uncompared.Say("%d of %d blocks of %s and %s", elsewhere, shown+elsewhere, c.Subject, c.Baseline)
		}
		for _, m := range Compared {
			if !Comparable(m, subject.Scenario, baseline.Scenario) {
				continue
			}
			if p := b.Paired(c.Subject, c.Baseline, m); p != nil {
				list, titles = append(list, p), append(titles, c.Title)
			}
		}
	}
	b.Doubt.SayIf(uncompared != nil, "Some blocks are not compared, because both scenarios ran at another CPU distance than the one of these figures: %s.", phrase.Some(uncompared, model.MostNamed))
	return list, titles
}

// Comparisons makes all comparisons of the report with their verdicts. It returns the
// plan's comparisons and ladders. apart is as for compare.
func (b *Judge) Comparisons(apart map[suite.Comparison]string) ([]model.Comparison, []model.Ladder) {
	all, titles := b.compare(apart)
	ladders, steps := b.ladders()
	b.settle(slices.Concat(all, steps))
	list := make([]model.Comparison, len(all))
	for i, c := range all {
		list[i] = *c
		list[i].Title = titles[i]
	}
	for i := range ladders {
		judge(&ladders[i])
	}
	return list, ladders
}

// WithoutCommonBlock returns a text if both scenarios have figures, but no block has
// figures of both at the CPU distance of this report. Otherwise it returns "".
func (b *Judge) WithoutCommonBlock(subject, baseline string) string {
	shown, elsewhere := b.CommonBlocks(subject, baseline)
	if shown > 0 || !b.measured(subject) || !b.measured(baseline) {
		return ""
	}
	text := fmt.Sprintf("%s and %s have figures, but no block has figures of both", subject, baseline)
	if len(b.Parts) > 1 {
		text += fmt.Sprintf(" at this CPU distance (at another distance %s)", phrase.Count(elsewhere, "block"))
	}
	return text
}

// measured reports whether a scenario is in the plan and has figures.
func (b *Judge) measured(id string) bool {
	c := b.Cells[id]
	return c != nil && len(c.Counting) > 0
}

// CommonBlocks counts the blocks in which subject and baseline have figures at the same CPU distance: shown at the
// distance of this report, elsewhere at another distance. subject and baseline may be the same scenario.
func (b *Judge) CommonBlocks(subject, baseline string) (shown, elsewhere int) {
	for i, part := range b.Parts {
		of := make(map[string]map[int]bool) // blocks by scenario
		for j := range part {
			if s := &part[j]; s.Counts() {
				if of[s.Scenario] == nil {
					of[s.Scenario] = make(map[int]bool)
				}
				of[s.Scenario][s.Block] = true
			}
		}
		for block := range of[subject] {
			switch {
			case !of[baseline][block]:
			case i == b.Part:
				shown++
			default:
				elsewhere++
			}
		}
	}
	return shown, elsewhere
}
