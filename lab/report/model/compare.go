package model

import (
	"fmt"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// compared lists the metrics that comparisons have a ratio of.
var compared = []sample.Metric{
	sample.Throughput, sample.Capacity, sample.Transactions, sample.LatencyP50, sample.LatencyP99, sample.LoadThroughput,
	sample.SenderCPU, sample.ReceiverCPU, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte,
	sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket,
}

// compare makes the plan's comparisons: one for each metric that both scenarios have.
// titles has the plan's title of each. If two scenarios have figures but cannot be
// compared, compare adds the reason to apart.
func (b *builder) compare(apart map[suite.Comparison]string) (list []*Comparison, titles []string) {
	for _, c := range b.plan.Comparisons {
		subject, baseline := b.cells[c.Subject], b.cells[c.Baseline]
		if subject == nil || baseline == nil {
			b.doubt.Say("The comparison of %s with %s names a scenario that the plan does not have.", c.Subject, c.Baseline)
			continue
		}
		if why := b.withoutCommonBlock(c.Subject, c.Baseline); why != "" {
			apart[suite.Comparison{Subject: c.Subject, Baseline: c.Baseline}] = why
			b.doubt.Say("%s, so they cannot be compared.", why)
		} else if shown, elsewhere := b.commonBlocks(c.Subject, c.Baseline); elsewhere > 0 {
			b.doubt.Say("%s and %s are compared in %s, in which both ran at the CPU distance of these figures. Not counted: %s at another distance.", c.Subject, c.Baseline, phrase.Count(shown, "block"), phrase.Count(elsewhere, "block"))
		}
		for _, m := range compared {
			if !comparable(m, subject.scenario, baseline.scenario) {
				continue
			}
			if p := b.paired(c.Subject, c.Baseline, m); p != nil {
				list, titles = append(list, p), append(titles, c.Title)
			}
		}
	}
	return list, titles
}

// comparisons makes all comparisons of the report with their verdicts. It returns the
// plan's comparisons and ladders. apart is as for compare.
func (b *builder) comparisons(apart map[suite.Comparison]string) ([]Comparison, []Ladder) {
	all, titles := b.compare(apart)
	ladders, steps := b.ladders()
	b.settle(slices.Concat(all, steps))
	list := make([]Comparison, len(all))
	for i, c := range all {
		list[i] = *c
		list[i].Title = titles[i]
	}
	for i := range ladders {
		ladders[i].judge()
	}
	return list, ladders
}

// withoutCommonBlock returns a text if both scenarios have figures, but no block has
// figures of both at the CPU distance of this report. Otherwise it returns "".
func (b *builder) withoutCommonBlock(subject, baseline string) string {
	shown, elsewhere := b.commonBlocks(subject, baseline)
	if shown > 0 || !b.measured(subject) || !b.measured(baseline) {
		return ""
	}
	text := fmt.Sprintf("%s and %s have figures, but no block has figures of both", subject, baseline)
	if len(b.parts) > 1 {
		text += fmt.Sprintf(" at this CPU distance (at another distance %s)", phrase.Count(elsewhere, "block"))
	}
	return text
}

// measured reports whether a scenario is in the plan and has figures.
func (b *builder) measured(id string) bool {
	c := b.cells[id]
	return c != nil && len(c.ok) > 0
}

// commonBlocks counts the blocks in which both scenarios have figures at the same CPU
// distance: shown at the distance of this report, elsewhere at another distance.
func (b *builder) commonBlocks(subject, baseline string) (shown, elsewhere int) {
	for i, part := range b.parts {
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
			case i == b.part:
				shown++
			default:
				elsewhere++
			}
		}
	}
	return shown, elsewhere
}
