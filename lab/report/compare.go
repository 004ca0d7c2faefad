package report

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
// with the title that the plan gives the comparison. apart gets why two scenarios
// with figures have nothing to compare.
func (b *builder) compare(apart map[suite.Comparison]string) (list []*Comparison, titles []string) {
	for _, c := range b.plan.Comparisons {
		if b.scenarios[c.Subject] == nil || b.scenarios[c.Baseline] == nil {
			b.doubt = append(b.doubt, fmt.Sprintf("The comparison of %s with %s names a scenario that the plan does not have.", c.Subject, c.Baseline))
			continue
		}
		if why := b.apart(c); why != "" {
			apart[suite.Comparison{Subject: c.Subject, Baseline: c.Baseline}] = why
			b.doubt = append(b.doubt, why+", so they cannot be compared.")
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

// apart says that both have figures, and in no block both at the distance shown;
// empty where a block has both, or one has none.
func (b *builder) apart(c suite.Comparison) string {
	subject, baseline := b.cells[c.Subject], b.cells[c.Baseline]
	if len(subject.ok) == 0 || len(baseline.ok) == 0 || common(subject, baseline) > 0 {
		return ""
	}
	text := fmt.Sprintf("%s and %s have figures, but in no block both", c.Subject, c.Baseline)
	if len(b.parts) < 2 {
		return text
	}
	n := 0
	for _, part := range b.parts {
		cells := sorted(b.plan, part)
		n += common(cells[c.Subject], cells[c.Baseline])
	}
	return fmt.Sprintf("%s at this distance of the CPUs (at another distance both in %s)", text, phrase.Count(n, "block"))
}

// common returns the number of blocks with figures of both.
func common(a, b *cell) (n int) {
	for _, s := range a.ok {
		if slices.ContainsFunc(b.ok, func(o *sample.Sample) bool { return o.Block == s.Block }) {
			n++
		}
	}
	return n
}
