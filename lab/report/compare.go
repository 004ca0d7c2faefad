package report

import (
	"fmt"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// compared lists the metrics of which a ratio says something about cost.
var compared = []sample.Metric{
	sample.Throughput, sample.Capacity, sample.Transactions, sample.LatencyP50, sample.LatencyP99,
	sample.SenderCPU, sample.ReceiverCPU, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte,
	sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket,
}

// compare yields every metric that both sides of the plan's comparisons have,
// with the title that the plan gives the comparison.
func (b *builder) compare() (list []*Comparison, titles []string) {
	for _, c := range b.plan.Comparisons {
		if b.scenarios[c.Subject] == nil || b.scenarios[c.Baseline] == nil {
			b.doubt = append(b.doubt, fmt.Sprintf("The comparison of %s with %s names a scenario that the plan does not have.", c.Subject, c.Baseline))
			continue
		}
		if b.apart(c) {
			b.doubt = append(b.doubt, fmt.Sprintf("%s and %s have figures, but in no block both, so they cannot be compared.", c.Subject, c.Baseline))
		}
		for _, m := range compared {
			if p := b.paired(c.Subject, c.Baseline, m); p != nil {
				list, titles = append(list, p), append(titles, c.Title)
			}
		}
	}
	return list, titles
}

// judged makes every comparison of the report once, and its verdict, and
// returns those of the plan's comparisons and of its ladders.
func (b *builder) judged() ([]Comparison, []Ladder) {
	all, titles := b.compare()
	ladders, steps := b.ladders()
	b.settle(all, steps)
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

// apart reports whether both have figures and no block in common.
func (b *builder) apart(c suite.Comparison) bool {
	subject, baseline := b.cells[c.Subject], b.cells[c.Baseline]
	if len(subject.ok) == 0 || len(baseline.ok) == 0 {
		return false
	}
	blocks := make(map[int]bool)
	for _, s := range subject.ok {
		blocks[s.Block] = true
	}
	for _, s := range baseline.ok {
		if blocks[s.Block] {
			return false
		}
	}
	return true
}
