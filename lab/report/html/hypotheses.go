package html

import (
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// hypothesis is a claim with what was observed.
type hypothesis struct {
	Claim, Metric, Asked, Why string
	Verdict                   mark
	Observed                  []observed
}

// observed is one subject's ratio to the baseline.
type observed struct {
	Of      string // "vxlan/stream / raw/stream"
	Ratio   string // "0.81", or why there is none
	Range   string
	Verdict mark
}

func (b *builder) hypotheses() []hypothesis {
	var list []hypothesis
	for _, h := range b.r.Hypotheses {
		out := hypothesis{Claim: h.Claim, Metric: sample.Metric(h.Metric).Label(), Asked: h.Printed, Why: h.Why, Verdict: judged(h.Judgement)}
		for _, o := range h.Observed {
			row := observed{Of: o.Subject + " / " + h.Baseline, Ratio: "not measured", Verdict: judged(o.Judgement)}
			if o.Ratio != nil {
				row.Ratio, row.Range = model.Scale{By: 1}.Figure(*o.Ratio)
			}
			out.Observed = append(out.Observed, row)
		}
		list = append(list, out)
	}
	return list
}

func judged(j model.Judgement) mark {
	switch j {
	case model.Holds:
		return mark{Sign: "✓", Word: "holds", Class: "holds"}
	case model.Refuted:
		return mark{Sign: "✗", Word: "refuted", Class: "refuted"}
	}
	return mark{Sign: "?", Word: "undecided", Class: "undecided"}
}
