package model

import (
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// Validity counts the run's attempts at trials, by whether their figures count and why not.
type Validity struct {
	Attempts int            `json:"attempts"` // all, without the profiler
	Valid    int            `json:"valid"`    // attempts with figures that count
	Warned   int            `json:"warned"`   // part of Valid: conditions were not valid (--gates warn)
	Failed   int            `json:"failed"`   // attempts without figures
	Gated    int            `json:"gated"`    // attempts rejected, because the conditions were not valid
	Profiled int            `json:"profiled"` // attempts with the profiler; not in the other counts
	Gates    []GateCount    `json:"gates,omitempty"`
	Missing  map[string]int `json:"missing,omitempty"` // planned trials without an attempt that counts, by scenario
}

// GateCount counts the attempts that failed one check.
type GateCount struct {
	Name   sample.GateName `json:"gate"`
	Trials int             `json:"trials"` // attempts that failed the check
	Worst  sample.Gate     `json:"worst"`
}

// Precision says whether the intervals are as narrow as the plan asks.
type Precision struct {
	Wanted  float64     `json:"wanted"` // relative half-width
	Reached bool        `json:"reached"`
	Blocks  int         `json:"blocks"`
	Why     string      `json:"why"` // why the run stopped, in a sentence
	Widest  []Imprecise `json:"widest,omitempty"`
}

// Imprecise is a figure with a wider interval than the plan asks for.
type Imprecise struct {
	Subject   string        `json:"subject"`
	Baseline  string        `json:"baseline,omitempty"` // empty: the subject's own figure
	Metric    sample.Metric `json:"metric"`
	HalfWidth float64       `json:"half_width"` // relative; 0: too few trials for an interval
}

// String describes the figure and its half-width: "receiver CPU of vxlan/stream to that
// of raw/stream is known within ±5.1 %".
func (i Imprecise) String() string {
	what := i.Metric.Label() + " of " + i.Subject
	if i.Baseline != "" {
		what += " to that of " + i.Baseline
	}
	if i.HalfWidth == 0 {
		return what + " has too few trials for an interval"
	}
	return what + " is known within ±" + quantity.Percentage(i.HalfWidth)
}
