package report

import (
	"fmt"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// Headline reports whether a comparison of m answers the question of a run:
// throughput and both sides' CPU per byte of a stream, transactions of
// request/response (exchange). Only headline comparisons are corrected for one
// another; the others are there to explain them.
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
	return Headline(m, isExchange(subject.Workload.Kind)) && comparable(m, subject, baseline)
}

// comparable reports whether m means the same of both scenarios: the CPU of a
// node that plays both sides is not that of a sender.
func comparable(m sample.Metric, subject, baseline *suite.Scenario) bool {
	return !ofSide(m) || subject.Placement == baseline.Placement
}

// ofSide reports whether m is the CPU of one side.
func ofSide(m sample.Metric) bool {
	switch m {
	case sample.SenderCPU, sample.ReceiverCPU, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte,
		sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket:
		return true
	}
	return false
}

// tested is a p-value on its way to a verdict.
type tested struct {
	p        *float64 // nil: too few blocks
	adjusted **float64
	verdict  *Verdict
}

// settle corrects p-values that stand together for one another by Holm's
// method, and gives each its verdict.
func settle(family []tested) {
	var ps []float64
	for _, t := range family {
		if t.p != nil {
			ps = append(ps, *t.p)
		}
	}
	adjusted := stats.Holm(ps)
	for _, t := range family {
		if t.p == nil {
			*t.verdict = TooFew
			continue
		}
		*t.adjusted = &adjusted[0]
		*t.verdict = judge(*t.p, &adjusted[0])
		adjusted = adjusted[1:]
	}
}

// judge gives the verdict of a p-value and, where it is one of a family, of
// what the correction made of it. The verdict follows them alone, also where
// the interval of the ratio says otherwise.
func judge(p float64, adjusted *float64) Verdict {
	switch {
	case adjusted != nil && *adjusted <= alpha:
		return Differs
	case p <= alpha:
		return Suggested
	}
	return Alike
}

// outOfReach says, of a family of so many tests of which the best has n blocks,
// that no outcome whatever could pass the correction, and how many blocks would
// do; empty where one could.
func outOfReach(what string, tests, n int) string {
	if tests < 2 || n == 0 || n < stats.MinimumTrials(stats.Level) || floor(n)*float64(tests) <= alpha {
		return ""
	}
	need := n
	for floor(need)*float64(tests) > alpha {
		need++
	}
	return fmt.Sprintf("%s of %d metrics are corrected for one another (Holm): even the most extreme outcome of %d trials (p = %.2g) cannot pass that, so that differences are suggested at best; it takes %d trials or more to show one.",
		what, tests, n, floor(n), need)
}

// mostBlocks bounds the search for a number of trials; by then the floor is
// below any p-value that a report needs.
const mostBlocks = 48

// floor is the least p-value that the signed ranks of n blocks can have.
func floor(n int) float64 {
	if n > mostBlocks {
		return 0
	}
	over, under := make([]float64, n), make([]float64, n)
	for i := range n {
		over[i], under[i] = 2+float64(i), 1
	}
	test, ok, err := stats.WilcoxonSignedRank(over, under)
	if !ok || err != nil {
		return 1
	}
	return test.Floor
}
