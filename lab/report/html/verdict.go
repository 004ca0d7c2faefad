package html

import (
	"fmt"
	"strings"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// mark shows the result of a comparison as a sign, a word and a CSS class, so that
// colour is never the only sign.
type mark struct {
	Sign  string `json:"sign"`
	Word  string `json:"word"`
	More  string `json:"more,omitempty"` // additional text, such as "p 0.0005"
	Class string `json:"class"`
}

// Text returns the mark on one line.
func (m mark) Text() string {
	text := strings.TrimSpace(m.Sign + " " + m.Word)
	if m.More != "" {
		text += " (" + m.More + ")"
	}
	return text
}

// markOf returns the mark of a verdict. p and adjusted are as in model.Comparison;
// they and detectable may be nil.
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

// pValue prints a p-value with few digits.
func pValue(p *float64) string {
	switch {
	case p == nil:
		return ""
	case *p < 0.001:
		return "p < 0.001"
	}
	return fmt.Sprintf("p %.2g", *p)
}

// toneOf returns whether a change of m in this direction is worse, better or neither.
// Only significant differences have a tone.
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
