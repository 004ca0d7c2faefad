package report

import (
	"fmt"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// compared lists the metrics of which a ratio says something about cost.
var compared = []sample.Metric{
	sample.Throughput, sample.Transactions, sample.LatencyP50, sample.LatencyP99,
	sample.SenderCPU, sample.ReceiverCPU, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte,
	sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket,
}

// compare yields every metric that both sides of a comparison have.
func (b *builder) compare() []Comparison {
	list := []Comparison{}
	for _, c := range b.plan.Comparisons {
		baseline, subject := b.cells[c.Baseline], b.cells[c.Subject]
		if baseline == nil || subject == nil {
			b.doubt = append(b.doubt, fmt.Sprintf("The comparison of %s with %s names a scenario that the plan does not have.", c.Subject, c.Baseline))
			continue
		}
		for _, m := range compared {
			if entry, ok := b.ratio(c, m, subject, baseline); ok {
				list = append(list, entry)
			}
		}
	}
	return list
}

// ratio compares one metric over the blocks in which both sides have it.
func (b *builder) ratio(c suite.Comparison, m sample.Metric, subject, baseline *cell) (Comparison, bool) {
	over, under := pair(m, subject, baseline)
	iv, ok, err := stats.PairedRatio(over, under, stats.Level)
	if err != nil {
		b.doubt = append(b.doubt, fmt.Sprintf("%s of %s and %s has no ratio: %v.", label(m), c.Subject, c.Baseline, err))
	}
	if !ok || err != nil {
		return Comparison{}, false
	}
	return Comparison{
		Title: c.Title, Baseline: c.Baseline, Subject: c.Subject, Metric: m, Ratio: Interval(iv),
		// The extremes of too few trials leave out 1 by luck too often.
		Distinct: iv.Excludes(1) && iv.Enough(stats.Level),
	}, true
}

// pair returns the values of both sides from the blocks that have both. Both
// columns are in order of block.
func pair(m sample.Metric, subject, baseline *cell) (over, under []float64) {
	i, j := 0, 0
	sb, bb := subject.blocks[m], baseline.blocks[m]
	for i < len(sb) && j < len(bb) {
		switch {
		case sb[i] < bb[j]:
			i++
		case sb[i] > bb[j]:
			j++
		default:
			over = append(over, subject.values[m][i])
			under = append(under, baseline.values[m][j])
			i++
			j++
		}
	}
	return over, under
}

// label names a metric for people.
func label(m sample.Metric) string {
	if info, ok := sample.Describe(m); ok {
		return info.Label
	}
	return string(m)
}
