package drawings

import (
	"fmt"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/verdicts"
)

// markOf returns the mark of a verdict. p, adjusted and detectable are fields of
// model.Comparison; each may be nil.
func markOf(v model.Verdict, p, adjusted, detectable *float64) document.Mark {
	switch v {
	case model.Differs:
		if adjusted == nil {
			adjusted = p
		}
		return document.Mark{Sign: "≠", Word: "differs", More: pValue(adjusted), Class: "differs"}
	case model.Suggested:
		return document.Mark{Sign: verdicts.Marks[v], Word: "suggested", More: "not confirmed by the correction for many comparisons", Class: "suggested"}
	case model.Alike:
		m := document.Mark{Sign: verdicts.Marks[v], Word: model.NoDifference, Class: "alike"}
		if detectable != nil && *detectable > 0 {
			m.More = "detectable: " + quantity.Percentage(*detectable)
		}
		return m
	case model.TooNoisy:
		return document.Mark{Sign: verdicts.Marks[v], Word: string(model.TooNoisy), Class: "noisy"}
	case model.TooFew:
		return document.Mark{Sign: verdicts.Marks[v], Word: "too few trials to tell", Class: "few"}
	}
	return document.Mark{}
}

func markOfComparison(c *model.Comparison) document.Mark {
	return markOf(c.Verdict, c.P, c.Adjusted, c.Detectable)
}

// pValue prints a p-value with two significant digits: "p 0.012"; "" for nil.
func pValue(p *float64) string {
	switch {
	case p == nil:
		return ""
	case *p < 0.001:
		return "p < 0.001"
	}
	return fmt.Sprintf("p %.2g", *p)
}
