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

// NotPinned returns the text ": the nodes are not pinned" if this is why a scenario has no such metric, and otherwise "".
func NotPinned(sc *suite.Scenario, m sample.Metric) string {
	if sc.Fabric.Unpinned && OfSide(m) {
		return ": the nodes are not pinned"
	}
	return ""
}

// settle sets the corrected p-values and the verdicts. One family contains all
// comparisons of the report and the steps of its ladders. It has each pair once.
func (b *Judge) settle(all []*model.Comparison) {
	var family []*model.Comparison
	var logs []map[int]float64
	for _, c := range all {
		if c.P != nil && !slices.Contains(family, c) {
			family, logs = append(family, c), append(logs, c.Logs)
		}
	}
	var jackknife []float64
	for _, c := range family {
		jackknife = append(jackknife, c.JackknifeP)
	}
	jackknife = stats.Holm(jackknife)
	for i, p := range stats.Family(ByBlock(logs)) {
		c := family[i]
		if b.Plan.Stop.Precision > 0 {
			p = stats.AfterLooks(p)
		}
		p = max(p, jackknife[i], *c.P) // the corrected p is from another test than P, and can be slightly below P
		if c.Adjusted = &p; excludesOne(c) && p <= Alpha {
			c.Verdict, c.Distinct = model.Differs, true
		}
	}
}

// ByBlock returns the values of each row in the blocks of all rows, as stats.Family needs
// them. A value is NaN if a row lacks the block.
func ByBlock(rows []map[int]float64) [][]float64 {
	places := make(map[int]int)
	for _, row := range rows {
		for block := range row {
			places[block] = 0
		}
	}
	for i, block := range slices.Sorted(maps.Keys(places)) {
		places[block] = i
	}
	list := make([][]float64, len(rows))
	for k, row := range rows {
		list[k] = slices.Repeat([]float64{math.NaN()}, len(places))
		for block, v := range row {
			list[k][places[block]] = v
		}
	}
	return list
}
