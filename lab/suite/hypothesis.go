package suite

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/sample"
)

// hypotheses adds the suite's hypotheses. It replaces groups by the ids of their
// scenarios.
func (x *expansion) hypotheses() {
	for _, e := range x.s.hypotheses.V {
		if h := e.V; x.checkForm(e.Pos, h) && x.checkDuplicates(h.subjects.V) {
			if h.baseline.Set {
				x.compared(h)
			} else {
				x.alone(h)
			}
		}
	}
}

// checkForm reports keys of a hypothesis that do not fit together. It returns false if
// the hypothesis cannot be used.
func (x *expansion) checkForm(pos position, h hypothesisSpec) bool {
	switch {
	case !h.ratio.Set && !h.difference.Set && !h.value.Set: // already reported
	case h.over.Set && (!h.ratio.Set || h.baseline.Set):
		x.j.fail(h.over.Pos, "over has no meaning here: it makes a ratio of two metrics of one scenario", "write ratio, and remove baseline; or remove over")
	case h.statistic.V == spreadFigure && (!h.ratio.Set || !h.baseline.Set):
		x.j.fail(h.statistic.Pos, "a claim about spreads lacks ratio or baseline", "write ratio and baseline, or remove statistic")
	case h.value.Set && h.baseline.Set:
		x.j.fail(h.baseline.Pos, "a value has no baseline", "remove baseline, or write ratio or difference instead of value")
	case !h.value.Set && !h.over.Set && !h.baseline.Set:
		x.j.fail(pos, "a hypothesis about a ratio or a difference lacks baseline", `add a line "baseline: …"; over divides by another metric of the same scenario instead`)
	case h.metric.Set && h.metric.V == "", h.over.Set && h.over.V == "": // unreadable; already reported
	default:
		return h.ratio.V.printed+h.difference.V.printed+h.value.V.printed != "" // else unreadable too
	}
	return false
}

// compared adds the hypotheses about subjects and a baseline. Ids give one hypothesis.
// Groups give one for each part after the "/" that baseline and subject have.
func (x *expansion) compared(h hypothesisSpec) {
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
		out := Hypothesis{Claim: claim, Baseline: b, Metric: h.metricOf(x.workload(b).Kind)}
		for _, p := range pairs {
			if p.Baseline == b {
				out.Subjects = append(out.Subjects, p.Subject)
			}
		}
		x.claim(h, out)
	}
}

// alone adds a hypothesis about figures of the subjects alone.
func (x *expansion) alone(h hypothesisSpec) {
	out := Hypothesis{Claim: h.claim.V, Over: h.over.V}
	for _, subject := range h.subjects.V {
		ids, _, ok := x.lookUp(subject)
		if !ok {
			continue
		}
		for _, id := range ids {
			k := x.workload(id).Kind
			about := h.metricOf(k)
			if !yields(k, about) || h.over.V != "" && !yields(k, h.over.V) {
				x.j.fail(subject.Pos, fmt.Sprintf("%q (%s) does not have %s", id, k, strings.TrimSuffix(about+" and "+h.over.V, " and ")), "name a metric that the traffic has")
				return
			}
			out.Metric, out.Subjects = about, append(out.Subjects, id)
		}
	}
	if len(out.Subjects) > 0 {
		x.claim(h, out)
	}
}

// claim sets the range of a hypothesis, and adds it to the plan.
func (x *expansion) claim(h hypothesisSpec, out Hypothesis) {
	info, _ := sample.Describe(sample.Metric(out.Metric))
	claimed := h.value
	out.Spread = h.statistic.V == spreadFigure
	if out.Difference = h.difference.Set; out.Difference {
		claimed = h.difference
	}
	if h.ratio.Set {
		out.Low, out.High, out.Printed = h.ratio.V.low, h.ratio.V.high, h.ratio.V.printed
	} else {
		var problem, remedy string
		out.Printed = claimed.V.printed
		if out.Low, out.High, problem, remedy = claimed.V.bounds(info.Unit, out.Difference); problem != "" {
			x.j.fail(claimed.Pos, problem, remedy)
			return
		}
	}
	x.plan.Hypotheses = append(x.plan.Hypotheses, out)
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
// pair has the metric, it reports an error, unless the plan is partial.
func (x *expansion) pairsWithMetric(h hypothesisSpec, subject at[string], pairs []Comparison) (out []Comparison) {
	for _, p := range pairs {
		about := h.metricOf(x.workload(p.Baseline).Kind)
		if yields(x.workload(p.Baseline).Kind, about) && yields(x.workload(p.Subject).Kind, about) {
			out = append(out, p)
		}
	}
	if len(pairs) > 0 && out == nil && !x.partial {
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
	case k == "": // unreadable; already reported
		return true
	case info.Is(sample.Streams):
		return !k.Exchange()
	case info.Is(sample.Datagrams):
		return k == UDPStream
	case info.Is(sample.Exchanges):
		return k.Exchange()
	}
	return true
}
