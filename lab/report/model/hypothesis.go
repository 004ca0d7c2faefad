package model

import (
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Hypothesis is a plan's hypothesis, judged.
type Hypothesis struct {
	suite.Hypothesis
	Judgement Judgement  `json:"judgement"`
	Observed  []Observed `json:"observed,omitempty"` // one for each subject
	Why       string     `json:"why"`                // the figures and the reason, in sentences
	// Cause is the suite's cause if the hypothesis is refuted, and the reason if the verdict
	// does not depend on the figures; "" if none is known.
	Cause string `json:"cause,omitempty"`
}

// Judgement is the result of a hypothesis.
type Judgement string

const (
	Holds     Judgement = "holds"
	Refuted   Judgement = "refuted"
	Undecided Judgement = "undecided"
	// NotHere: the machine cannot run a scenario (Why has the reason), or the lab lacks what the
	// figure depends on (Cause).
	NotHere Judgement = Judgement(suite.NotHere)
	// ByConstruction: the suite set the figure, so that it could not come out otherwise.
	ByConstruction Judgement = Judgement(suite.ByConstruction)
)

// Judgements lists all judgements, in the order of reports.
var Judgements = []Judgement{Holds, Refuted, Undecided, ByConstruction, NotHere}

// Observed is the figure of one subject, and the judgement from it. The figure is a
// ratio, or a difference or a value in the metric's unit.
type Observed struct {
	Subject   string             `json:"subject"`
	Figure    *quantity.Interval `json:"figure,omitempty"` // nil if it could not be measured
	Judgement Judgement          `json:"judgement"`
}

// FigureText prints a figure of the hypothesis with its interval: "0.98× [0.97, 0.99]",
// or "9.31 Gbit/s [9.28, 9.35]".
func (h Hypothesis) FigureText(figure quantity.Interval) string {
	if h.Over != "" || h.Baseline != "" && !h.Difference {
		return quantity.Bracketed(figure, 2, "×", 1, h.Low, h.High)
	}
	scale := quantity.ScaleOf(sample.Metric(h.Metric), figure.Low, figure.High)
	by := func(v float64) float64 { return v / scale.By }
	scaled := quantity.Interval{Median: by(figure.Median), Low: by(figure.Low), High: by(figure.High), N: figure.N}
	text := quantity.Bracketed(scaled, quantity.Significant(scaled.Median), strings.TrimPrefix(quantity.WithUnit(" ", scale.Unit), " "), by(h.Low), by(h.High))
	return strings.ReplaceAll(text, "-", "−")
}

// CauseText returns the cause of a refuted hypothesis as a sentence, or that it is not known. It
// returns the reason of a verdict that does not depend on the figures; else "".
func (h Hypothesis) CauseText() string {
	switch {
	case h.Cause == "" && h.Judgement != Refuted:
		return ""
	case h.Judgement != Refuted:
		return "Reason: " + strings.TrimSuffix(h.Cause, ".") + "."
	case h.Cause == "":
		return phrase.Capital(CauseNotKnown) + "."
	}
	return "Cause: " + strings.TrimSuffix(h.Cause, ".") + "."
}

// CauseNotKnown marks a difference for which the suite gives no cause.
const CauseNotKnown = "cause not known"
