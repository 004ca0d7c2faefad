package suite

import (
	"fmt"
	"slices"

	"windtunnel/lab/sample"
)

// hypotheses adds the suite's hypotheses. It replaces groups by the ids of their
// scenarios.
func (x *expansion) hypotheses() {
	for _, h := range x.s.hypotheses.V {
		if h.V.ratio.V.printed != "" { // else unreadable; already reported
			x.hypothesis(h.V)
		}
	}
}

// hypothesis adds the hypotheses of one entry. Ids give one hypothesis. Groups give
// one for each part after the "/" that baseline and subject have.
func (x *expansion) hypothesis(h hypothesisSpec) {
	if !x.checkDuplicates(h.subjects.V) {
		return
	}
	var pairs []Comparison
	for _, subject := range h.subjects.V {
		found := x.pairsWithMetric(h, subject, x.pairs(h.baseline, subject))
		pairs = append(pairs, found...)
	}
	var baselines []string
	for _, sc := range x.plan.Scenarios {
		if slices.ContainsFunc(pairs, func(p Comparison) bool { return p.Baseline == sc.ID }) {
			baselines = append(baselines, sc.ID)
		}
	}
	for _, b := range baselines {
		claim := h.claim.V
		if part := Part(b); len(baselines) > 1 {
			claim += " (" + part + ")"
		}
		out := Hypothesis{
			Claim: claim, Metric: h.metricOf(x.workload(b).Kind), Baseline: b,
			Low: h.ratio.V.low, High: h.ratio.V.high, Printed: h.ratio.V.printed,
		}
		for _, p := range pairs {
			if p.Baseline == b {
				out.Subjects = append(out.Subjects, p.Subject)
			}
		}
		x.plan.Hypotheses = append(x.plan.Hypotheses, out)
	}
}

// checkDuplicates reports a subject that occurs twice.
func (x *expansion) checkDuplicates(subjects []at[string]) bool {
	for i, s := range subjects {
		if s.V != "" && slices.ContainsFunc(subjects[:i], func(o at[string]) bool { return o.V == s.V }) {
			x.j.fail(s.Pos, fmt.Sprintf("%q is a subject of this hypothesis twice", s.V), "remove one of the two")
			return false
		}
	}
	return true
}

// metricOf returns the metric of the hypothesis. The default is the main metric of the
// traffic.
func (h hypothesisSpec) metricOf(k Kind) string {
	switch {
	case h.metric.Set:
		return h.metric.V
	case k.Exchange():
		return string(sample.Transactions)
	}
	return string(sample.Throughput)
}

// pairsWithMetric returns the pairs in which both scenarios have the metric. If no
// pair has the metric, it reports an error.
func (x *expansion) pairsWithMetric(h hypothesisSpec, subject at[string], pairs []Comparison) (out []Comparison) {
	for _, p := range pairs {
		about := h.metricOf(x.workload(p.Baseline).Kind)
		if yields(x.workload(p.Baseline).Kind, about) && yields(x.workload(p.Subject).Kind, about) {
			out = append(out, p)
		}
	}
	if len(pairs) > 0 && out == nil {
		b, s := x.workload(pairs[0].Baseline).Kind, x.workload(pairs[0].Subject).Kind
		x.j.fail(or(h.metric.Pos, subject.Pos), fmt.Sprintf("%s is not measured in both %q (%s) and %q (%s)", h.metricOf(b), pairs[0].Baseline, b, pairs[0].Subject, s),
			"streams have throughput_bps, request/response has transactions_per_s and latencies: name a metric that both have")
	}
	return out
}

// yields reports whether traffic of the kind k has a metric. All traffic has the
// meters' metrics; the tools' metrics depend on the kind.
func yields(k Kind, metric string) bool {
	info, _ := sample.Describe(sample.Metric(metric))
	switch {
	case info.Is(sample.Streams):
		return !k.Exchange()
	case info.Is(sample.Datagrams):
		return k == UDPStream
	case info.Is(sample.Exchanges):
		return k.Exchange()
	}
	return true
}
