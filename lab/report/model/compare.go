package model

import (
	"fmt"
	"slices"

	"windtunnel/lab/phrase"
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
// with the title that the plan gives the comparison. If two scenarios
// have figures but cannot be compared, it adds the reason to apart.
func (b *builder) compare(apart map[suite.Comparison]string) (list []*Comparison, titles []string) {
	for _, c := range b.plan.Comparisons {
		if b.scenarios[c.Subject] == nil || b.scenarios[c.Baseline] == nil {
			b.doubt = append(b.doubt, fmt.Sprintf("The comparison of %s with %s names a scenario that the plan does not have.", c.Subject, c.Baseline))
			continue
		}
		if why := b.apart(c); why != "" {
			apart[suite.Comparison{Subject: c.Subject, Baseline: c.Baseline}] = why
			b.doubt = append(b.doubt, why+", so they cannot be compared.")
		} else if here, elsewhere := b.together(c); elsewhere > 0 {
			b.doubt = append(b.doubt, fmt.Sprintf("%s and %s are compared in %s, in which both ran at this CPU distance; in %s both ran at another.", c.Subject, c.Baseline, phrase.Count(here, "block"), phrase.Count(elsewhere, "block")))
		}
		for _, m := range compared {
			if !comparable(m, b.scenarios[c.Subject], b.scenarios[c.Baseline]) {
				continue
			}
			if p := b.paired(c.Subject, c.Baseline, m); p != nil {
				list, titles = append(list, p), append(titles, c.Title)
			}
		}
	}
	return list, titles
}

// judged makes every comparison of the report once, and its verdict, and
// returns those of the plan's comparisons and of its ladders.
func (b *builder) judged(apart map[suite.Comparison]string) ([]Comparison, []Ladder) {
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

// apart returns a text if both scenarios have figures, but no block has figures of
// both at the distance shown. It returns "" otherwise.
func (b *builder) apart(c suite.Comparison) string {
	here, elsewhere := b.together(c)
	if here > 0 || len(b.cells[c.Subject].ok) == 0 || len(b.cells[c.Baseline].ok) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s and %s have figures, but no block has figures of both", c.Subject, c.Baseline)
	if len(b.parts) > 1 {
		text += fmt.Sprintf(" at this CPU distance (at another distance %s)", phrase.Count(elsewhere, "block"))
	}
	return text
}

// together counts the blocks in which both scenarios have figures at the same CPU
// distance: here at the distance shown, elsewhere at another.
func (b *builder) together(c suite.Comparison) (here, elsewhere int) {
	here = common(b.cells[c.Subject].ok, b.cells[c.Baseline].ok)
	for _, part := range b.parts {
		counting := func(id string) []*sample.Sample {
			var list []*sample.Sample
			for i := range part {
				if part[i].Scenario == id {
					list = append(list, &part[i])
				}
			}
			return sample.Counting(list)
		}
		if len(b.parts) > 1 {
			elsewhere += common(counting(c.Subject), counting(c.Baseline))
		}
	}
	return here, max(0, elsewhere-here)
}

// common returns the number of blocks that occur in both lists.
func common(a, b []*sample.Sample) (n int) {
	for _, s := range a {
		if slices.ContainsFunc(b, func(o *sample.Sample) bool { return o.Block == s.Block }) {
			n++
		}
	}
	return n
}
