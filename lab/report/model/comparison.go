package model

import (
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Comparison compares one metric of two scenarios, a subject and its baseline. Each block gives
// one ratio.
type Comparison struct {
	Title    string        `json:"title,omitempty"`
	Baseline string        `json:"baseline"`
	Subject  string        `json:"subject"`
	Metric   sample.Metric `json:"metric"`
	// Ratio within blocks; see stats.Ratio.
	Ratio quantity.Interval `json:"ratio"`
	// P is the two-sided p-value of the signed-rank test; nil with too few blocks.
	// Ratio's interval is the inverse of this test. If the figures are adjusted to one state of the machine, P is the
	// larger of the p-values of this test and of the jackknife, and the interval contains the intervals of both.
	// Adjusted is P after the correction for the number of comparisons in the report: stats.Family for the test,
	// stats.Holm for the jackknife.
	P        *float64 `json:"p,omitempty"`
	Adjusted *float64 `json:"p_adjusted,omitempty"`
	// Effect is the matched-pairs rank-biserial correlation, −1…+1.
	Effect *float64 `json:"effect,omitempty"`
	// Detectable is the smallest true difference that these blocks would have shown
	// with a power of 0.8. 0.03 means a ratio of 1.03.
	Detectable *float64 `json:"detectable,omitempty"`
	Verdict    Verdict  `json:"verdict"`
	// Distinct: the verdict is Differs.
	Distinct bool `json:"distinct"`

	Logs       map[int]float64 `json:"-"` // logarithm of the ratio in each block
	JackknifeP float64         `json:"-"` // p-value of the jackknife for adjusted figures, 0 for other figures
}

// Verdict is the result of a comparison.
type Verdict string

const (
	Differs   Verdict = "differs"            // significant after the correction for many comparisons
	Suggested Verdict = "suggested"          // the interval excludes 1, but not after the correction
	Alike     Verdict = "alike"              // the interval contains 1; see Detectable
	TooFew    Verdict = "too few"            // too few blocks to show a difference
	TooNoisy  Verdict = "too noisy to judge" // as Alike, but Detectable is above NoisyAbove
)

// NoDifference is the text of the verdict Alike.
const NoDifference = "no difference shows"

// NoisyAbove is the bound of the smallest detectable difference, as a share. Where only a
// larger difference would show, the figures are too noisy to judge.
const NoisyAbove = 1.0

// Equal reports whether the interval contains 1: no difference shows, or the figures are
// too noisy.
func (v Verdict) Equal() bool { return v == Alike || v == TooNoisy }

// Names returns the names of the two sides of a comparison. If the scenarios differ
// only in their groups, the names are the groups and grouped is true. Otherwise they
// are the ids.
func Names(subject, baseline string) (a, b string, grouped bool) {
	if suite.Group(subject) != suite.Group(baseline) && suite.Part(subject) == suite.Part(baseline) {
		return suite.Group(subject), suite.Group(baseline), true
	}
	return subject, baseline, false
}
