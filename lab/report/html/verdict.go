package html

import (
	"fmt"
	"strings"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// mark says what a comparison shows: as a sign, a word and a class of the
// style sheet, so that never the colour alone tells it.
type mark struct {
	Sign  string `json:"sign"`
	Word  string `json:"word"`
	More  string `json:"more,omitempty"` // what else there is to know, "p 0.0005"
	Class string `json:"class"`
}

// Text is the mark in one line.
func (m mark) Text() string {
	text := strings.TrimSpace(m.Sign + " " + m.Word)
	if m.More != "" {
		text += " (" + m.More + ")"
	}
	return text
}

// markOf puts a verdict in words. p and adjusted are as in model.Comparison,
// nil where there is none, and so is detectable.
func markOf(v model.Verdict, p, adjusted, detectable *float64) mark {
	switch v {
	case model.Differs:
		if adjusted == nil {
			adjusted = p
		}
		return mark{Sign: "≠", Word: "differs", More: pValue(adjusted), Class: "differs"}
	case model.Suggested:
		return mark{Sign: "?", Word: "suggested", More: "not confirmed by the correction for many comparisons", Class: "suggested"}
	case model.Alike:
		m := mark{Sign: "~", Word: "no difference shows", Class: "alike"}
		if detectable != nil && *detectable > 0 {
			m.More = "detectable: " + model.Percentage(*detectable)
		}
		return m
	case model.TooFew:
		return mark{Sign: "…", Word: "too few trials to tell", Class: "few"}
	}
	return mark{}
}

func markOfComparison(c *model.Comparison) mark {
	return markOf(c.Verdict, c.P, c.Adjusted, c.Detectable)
}

// pValue prints no more digits than a p-value deserves.
func pValue(p *float64) string {
	switch {
	case p == nil:
		return ""
	case *p < 0.001:
		return "p < 0.001"
	}
	return fmt.Sprintf("p %.2g", *p)
}

// toneOf says whether a change of m in this direction costs: worse, better or
// neither. Only what differs has a tone.
func toneOf(m sample.Metric, v model.Verdict, change float64) string {
	info, _ := sample.Describe(m)
	switch way := change * float64(info.Better); {
	case v != model.Differs:
		return ""
	case way < 0:
		return "worse"
	case way > 0:
		return "better"
	}
	return ""
}
