package report

import (
	"fmt"
	"math"
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// Headline reports whether a comparison of m answers the question of a run:
// throughput and both sides' CPU per byte of a stream, transactions of
// request/response (exchange). Only these and the steps of ladders are corrected
// for one another; other comparisons are there to explain them, and suggest a
// difference at best.
func Headline(m sample.Metric, exchange bool) bool {
	switch m {
	case sample.Throughput, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte:
		return !exchange
	case sample.Transactions:
		return exchange
	}
	return false
}

// headline reports whether the comparison of m of two scenarios is one. One
// node that plays both sides has no sender to compare.
func headline(m sample.Metric, subject, baseline *suite.Scenario) bool {
	return Headline(m, subject.Workload.Kind.Exchange()) && comparable(m, subject, baseline)
}

// comparable reports whether m means the same of both scenarios: the CPU of a
// node that plays both sides is not that of a sender.
func comparable(m sample.Metric, subject, baseline *suite.Scenario) bool {
	return !ofSide(m) || subject.Placement == baseline.Placement
}

// ofSide reports whether a metric is the CPU of the sender or the receiver.
func ofSide(m sample.Metric) bool { return m.Side() != "" || m == sample.Capacity }

// settle turns Suggested into Differs where the difference stands after Holm's
// correction. The correction is over what the report answers: its headline
// comparisons and the steps of its ladders, each pair once.
func (b *builder) settle(all, steps []*Comparison) {
	var family []*Comparison
	var ps []float64
	most := 0
	add := func(c *Comparison) {
		if c.P != nil && !slices.Contains(family, c) {
			family, ps, most = append(family, c), append(ps, *c.P), max(most, c.Ratio.N)
		}
	}
	for _, c := range all {
		if headline(c.Metric, b.scenarios[c.Subject], b.scenarios[c.Baseline]) {
			add(c)
		}
	}
	for _, c := range steps {
		add(c)
	}
	adjusted := stats.Holm(ps)
	for i, c := range family {
		c.Adjusted = &adjusted[i]
		if c.excludesOne() && adjusted[i] <= Alpha {
			c.Verdict, c.Distinct = Differs, true
		}
	}
	if text := outOfReach(len(family), most); text != "" {
		b.doubt = append(b.doubt, text)
	}
}

// outOfReach says, of a family of so many tests of which the best has n blocks,
// that no outcome whatever could pass the correction, and how many blocks would
// do; empty where one could.
func outOfReach(tests, n int) string {
	if tests < 2 || n == 0 || n < stats.MinimumTrials(stats.Level) || floor(n)*float64(tests) <= Alpha {
		return ""
	}
	need := n
	for floor(need)*float64(tests) > Alpha {
		need++
	}
	return fmt.Sprintf("%d comparisons are corrected for one another (Holm): even the most extreme outcome of %d trials (p = %.2g) cannot pass that, so that differences are suggested at best; it takes %d trials or more to show one.",
		tests, n, floor(n), need)
}

// floor is the least p-value of n blocks: all of them differ the same way.
func floor(n int) float64 { return math.Ldexp(1, 1-n) }

// corrected returns the number of comparisons in the correction for many tests.
func corrected(all []Comparison) int {
	n := 0
	for i := range all {
		if all[i].Adjusted != nil {
			n++
		}
	}
	return n
}
