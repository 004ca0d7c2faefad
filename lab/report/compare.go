package report

import (
	"fmt"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// compared lists the metrics of which a ratio says something about cost.
var compared = []sample.Metric{
	sample.Throughput, sample.Transactions, sample.LatencyP50, sample.LatencyP99,
	sample.SenderCPU, sample.ReceiverCPU, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte,
	sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket,
}

// compare yields every metric that both sides of a comparison have, with its
// verdict.
func (b *builder) compare() []Comparison {
	list := []Comparison{}
	for _, c := range b.plan.Comparisons {
		if b.scenarios[c.Subject] == nil || b.scenarios[c.Baseline] == nil {
			b.doubt = append(b.doubt, fmt.Sprintf("The comparison of %s with %s names a scenario that the plan does not have.", c.Subject, c.Baseline))
			continue
		}
		if b.apart(c) {
			b.doubt = append(b.doubt, fmt.Sprintf("%s and %s have figures, but in no block both, so they cannot be compared.", c.Subject, c.Baseline))
		}
		for _, m := range compared {
			if entry, ok := b.comparison(c, m); ok {
				list = append(list, entry)
			}
		}
	}
	b.judge(list)
	return list
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

// comparison compares one metric over the blocks in which both sides have it.
func (b *builder) comparison(c suite.Comparison, m sample.Metric) (Comparison, bool) {
	p := b.paired(c.Subject, c.Baseline, m)
	if p.ratio == nil {
		return Comparison{}, false
	}
	entry := Comparison{Title: c.Title, Baseline: c.Baseline, Subject: c.Subject, Metric: m, Ratio: *p.ratio, P: p.p(), Detectable: p.detectable}
	if entry.P != nil {
		entry.Effect = &p.test.Effect
	}
	return entry, true
}

// judge gives every comparison its verdict. The headline ones are corrected for
// one another; the rest can be suggested at best.
func (b *builder) judge(list []Comparison) {
	var family []tested
	most := 0
	for i := range list {
		c := &list[i]
		switch {
		case headline(c.Metric, b.scenarios[c.Subject], b.scenarios[c.Baseline]):
			family = append(family, tested{c.P, &c.Adjusted, &c.Verdict})
			if c.P != nil {
				most = max(most, c.Ratio.N)
			}
		case c.P == nil:
			c.Verdict = TooFew
		default:
			c.Verdict = judge(*c.P, nil)
		}
	}
	settle(family)
	for i := range list {
		list[i].Distinct = list[i].Verdict == Differs
		if list[i].Adjusted != nil {
			b.family++
		}
	}
	if text := outOfReach("The headline comparisons", b.family, most); text != "" {
		b.doubt = append(b.doubt, text)
	}
}

// label names a metric for people.
func label(m sample.Metric) string {
	if info, ok := sample.Describe(m); ok {
		return info.Label
	}
	return string(m)
}
