package suite

import "slices"

// Cause is a known reason why measured figures differ from a document.
type Cause struct {
	Subject  string   `json:"subject"`            // scenario ID
	Baseline string   `json:"baseline,omitempty"` // scenario ID; "" for every baseline, and for values without one
	Metrics  []string `json:"metrics,omitempty"`  // each a sample.Metric; nil for all
	Cause    string   `json:"cause"`
}

// causes adds the causes of differences. It replaces groups by the ids of their scenarios.
func (x *expansion) causes() {
	for _, e := range x.s.causes.V {
		c := e.V
		metrics := valuesOf(c.metrics.V, "")
		if !c.metrics.Set {
			metrics = nil
		}
		for _, subject := range c.subjects.V {
			for _, p := range x.differing(c, subject) {
				x.plan.Causes = append(x.plan.Causes, Cause{Subject: p.Subject, Baseline: p.Baseline, Metrics: metrics, Cause: c.cause.V})
			}
		}
	}
}

// differing returns the pairs of subject and baseline that a cause explains. If the cause has
// no baseline, the pairs have only a subject.
func (x *expansion) differing(c causeSpec, subject at[string]) (pairs []Comparison) {
	if c.baseline.Set {
		return x.pairs(c.baseline, subject)
	}
	ids, _, _ := x.lookUp(subject)
	for _, id := range ids {
		pairs = append(pairs, Comparison{Subject: id})
	}
	return pairs
}

// CauseOf returns the known cause of a difference of a figure; "" if there is none.
// baseline is "" for a value.
func (p *Plan) CauseOf(subject, baseline, metric string) string {
	for _, c := range p.Causes {
		if c.Subject == subject && (c.Baseline == "" || c.Baseline == baseline) && (c.Metrics == nil || slices.Contains(c.Metrics, metric)) {
			return c.Cause
		}
	}
	return ""
}
