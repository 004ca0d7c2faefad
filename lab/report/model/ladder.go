package model

import (
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// Ladder is a plan's ladder with the cost of each step.
type Ladder struct {
	Title string `json:"title,omitempty"`
	Steps []Rung `json:"steps"`
}

// Rung is one step of a ladder: a scenario, and its cost over the rung before it. The
// first rung has no cost.
type Rung struct {
	Scenario string `json:"scenario"`
	Name     string `json:"name"`           // name of the step in the report
	From     string `json:"from,omitempty"` // the scenario of the rung before
	Costs    []Cost `json:"costs,omitempty"`
}

// Cost returns the step's figure of m; nil if it has none.
func (g *Rung) Cost(m sample.Metric) *Cost {
	for i := range g.Costs {
		if g.Costs[i].Metric == m {
			return &g.Costs[i]
		}
	}
	return nil
}

// Cost is one metric of a step: throughput, transactions, CPU per byte or packet of one
// side, or latency.
type Cost struct {
	Metric sample.Metric      `json:"metric"`
	Figure *quantity.Interval `json:"figure,omitempty"` // of the step's scenario
	// Added is Figure less the figure of the rung before, in the metric's unit. Low
	// and High are the bounds of Ratio, applied to the rung before. See Adds.
	Added *quantity.Interval `json:"added,omitempty"`
	// The comparison with the rung before, as in Comparison.
	Ratio      *quantity.Interval `json:"ratio,omitempty"`
	P          *float64           `json:"p,omitempty"`
	Adjusted   *float64           `json:"p_adjusted,omitempty"`
	Detectable *float64           `json:"detectable,omitempty"`
	Verdict    Verdict            `json:"verdict,omitempty"`
	// Share is the part of the last rung's figure that this step added: 2/3 for 8 of
	// 12 ns. It needs a metric that adds up: CPU per byte or packet, or latency.
	Share *float64 `json:"share,omitempty"`

	Of *Comparison `json:"-"` // comparison with the rung before
}

// Adds reports whether a report states what the step adds. A difference must show,
// and the medians must differ in the direction of the ratio. The ratio is computed
// within blocks. If blocks drift, it can disagree with the medians.
func (c *Cost) Adds() bool {
	return c.Added != nil && c.Ratio != nil && !c.Verdict.Equal() && c.Added.Median*(c.Ratio.Median-1) > 0
}
