package model

import (
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// HostMatrix has the main figure of one scenario between all pairs of hosts: throughput
// of streams, or transactions of request/response.
type HostMatrix struct {
	Scenario string        `json:"scenario"` // ID without hosts
	Title    string        `json:"title"`
	Metric   sample.Metric `json:"metric"`
	Hosts    []string      `json:"hosts"`
	Blocks   int           `json:"blocks"` // number of blocks with a figure
	// Median and Reference are the median and the upper quartile of the pairs' figures, in
	// the metric's unit. Pairs are compared with the upper quartile: a slow host slows
	// all of its pairs, and of three hosts these are four of six pairs.
	Median    float64      `json:"median"`
	Reference float64      `json:"reference"`
	Pairs     []PairFigure `json:"pairs"` // in the order of the plan's matrix
}

// PairFigure is the figure from one host to another.
type PairFigure struct {
	From   string             `json:"from"`
	To     string             `json:"to"`
	Figure *quantity.Interval `json:"figure,omitempty"` // nil if it was not measured
	Why    string             `json:"why,omitempty"`    // why attempts of the pair do not count, the last reason
	// Ratio is the figure over the upper quartile of all pairs, within blocks.
	Ratio *quantity.Interval `json:"ratio,omitempty"`
	// Slow: the figure is below the upper quartile by more than 10 %. P is the corrected
	// p-value of this claim; nil with too few blocks.
	Slow bool     `json:"slow,omitempty"`
	P    *float64 `json:"p_adjusted,omitempty"`
	// Reverse is the figure over that of the opposite direction, within blocks.
	Reverse *quantity.Interval `json:"reverse_ratio,omitempty"`
	// Asymmetric: the figure is below that of the opposite direction by more than 10 %.
	// ReverseP is the corrected p-value of this claim. The slower direction has it.
	Asymmetric bool     `json:"asymmetric,omitempty"`
	ReverseP   *float64 `json:"reverse_p_adjusted,omitempty"`

	Values map[int]float64 `json:"-"` // by block
}

// HostPair returns the hosts of the figure.
func (f *PairFigure) HostPair() suite.HostPair { return suite.HostPair{From: f.From, To: f.To} }
