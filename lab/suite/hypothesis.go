package suite

import (
	"fmt"
	"slices"

	"windtunnel/lab/sample"
)

// hypotheses resolves IDs and groups into statements about scenarios.
func (x *expansion) hypotheses() {
	for _, h := range x.s.hypotheses.V {
		if h.V.ratio.V.printed != "" { // else unreadable, and reported
			x.hypothesis(h.V)
		}
	}
}

// hypothesis adds the statements of one entry: one for IDs, or one for every part
// that the groups of baseline and subject share.
func (x *expansion) hypothesis(h hypothesisSpec) {
	if !x.distinct(h.subjects.V) {
		return
	}
	var pairs []Comparison
	for _, subject := range h.subjects.V {
		found := x.measured(h, subject, x.pairs(h.baseline, subject))
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

// distinct reports a subject that occurs twice.
func (x *expansion) distinct(subjects []at[string]) bool {
	for i, s := range subjects {
		if s.V != "" && slices.ContainsFunc(subjects[:i], func(o at[string]) bool { return o.V == s.V }) {
			x.j.fail(s.Pos, fmt.Sprintf("%q is a subject of this hypothesis twice", s.V), "remove one of the two")
			return false
		}
	}
	return true
}

// metricOf returns the metric of the hypothesis: the given one, or the main metric of
// the traffic.
func (h hypothesisSpec) metricOf(k Kind) string {
	switch {
	case h.metric.Set:
		return h.metric.V
	case k.Exchange():
		return string(sample.Transactions)
	}
	return string(sample.Throughput)
}

// measured returns the pairs of which both scenarios have the metric. Some parts of a
// group may lack it; if all lack it, measured reports an error.
func (x *expansion) measured(h hypothesisSpec, subject at[string], pairs []Comparison) (out []Comparison) {
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

// yields reports whether traffic of a kind has a metric. The meters' metrics exist
// for all traffic; only the tools' metrics differ.
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
