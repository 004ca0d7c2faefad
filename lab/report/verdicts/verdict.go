package verdicts

import (
	"maps"
	"math"
	"slices"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// Headline reports whether m is a main figure of a run. For a stream these are
// throughput and both sides' CPU per byte. For request/response (exchange) it is
// transactions.
func Headline(m sample.Metric, exchange bool) bool {
	switch m {
	case sample.Throughput, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte:
		return !exchange
	case sample.Transactions:
		return exchange
	}
	return false
}

// Comparable reports whether m means the same for both scenarios. The CPU of a node
// that has both endpoints is not comparable with the CPU of a sender.
func Comparable(m sample.Metric, subject, baseline *suite.Scenario) bool {
	return !OfSide(m) || subject.Placement == baseline.Placement
}

// OfSide reports whether a metric is the CPU of the sender or the receiver.
func OfSide(m sample.Metric) bool {
	return m.Side() != "" && m != sample.SenderThroughput && m != sample.ReceiverThroughput || m == sample.Capacity
}

// settle sets the corrected p-values and the verdicts. One family contains all
// comparisons of the report and the steps of its ladders. It has each pair once.
func (b *Judge) settle(all []*model.Comparison) {
	var family []*model.Comparison
	for _, c := range all {
		if c.P != nil && !slices.Contains(family, c) {
			family = append(family, c)
		}
	}
	for i, p := range stats.Family(byBlock(family)) {
		c := family[i]
		if b.Plan.Stop.Precision > 0 {
			p = stats.AfterLooks(p)
		}
		p = max(p, *c.P) // two different tests: the corrected p can be slightly below P
		if c.Adjusted = &p; excludesOne(c) && p <= Alpha {
			c.Verdict, c.Distinct = model.Differs, true
		}
	}
}

// byBlock returns the logarithm of each comparison's ratio in each block: one row
// for each comparison. A value is NaN if a comparison lacks the block.
func byBlock(family []*model.Comparison) [][]float64 {
	places := make(map[int]int)
	for _, c := range family {
		for block := range c.Logs {
			places[block] = 0
		}
	}
	for i, block := range slices.Sorted(maps.Keys(places)) {
		places[block] = i
	}
	rows := make([][]float64, len(family))
	for k, c := range family {
		rows[k] = slices.Repeat([]float64{math.NaN()}, len(places))
		for block, log := range c.Logs {
			rows[k][places[block]] = log
		}
	}
	return rows
}
