package drawings

import (
	"fmt"
	"strings"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
)

func (b *builder) ladders() (list []document.Ladder) {
	for i := range b.r.Ladders {
		l := &b.r.Ladders[i]
		out := document.Ladder{ID: fmt.Sprintf("ladder-%d", i), Title: l.Title}
		for _, m := range verdicts.Climbed {
			if lines, scale := tables.Lines(l, m); lines != nil {
				out.Metrics = append(out.Metrics, b.waterfall(l, m, lines, scale))
			}
		}
		if len(out.Metrics) > 0 {
			out.Alt = ladderAlt(out)
			list = append(list, out)
		}
	}
	return list
}

func (b *builder) waterfall(l *model.Ladder, m sample.Metric, lines []tables.LadderLine, scale quantity.Scale) document.Waterfall {
	out := document.Waterfall{Name: m.Label(), Unit: scale.Unit, By: scale.By}
	for i, s := range l.Steps {
		r := document.Rung{Name: s.Name, Scenario: s.Scenario, Paint: b.paints[s.Scenario]}
		if c := s.Cost(m); c != nil {
			if r.Figure = spanOf(scale, c.Figure); r.Figure != nil {
				r.Figure.Text = lines[i].Figure
			}
			if i > 0 {
				add(&r, lines[i].Added, m, c)
			}
		}
		out.Rungs = append(out.Rungs, r)
	}
	return out
}

// add sets the cost of r's step. text is the cost as the report prints it; "" if the
// report has no cost for the step.
func add(r *document.Rung, text string, m sample.Metric, c *model.Cost) {
	if text != "" {
		iv := c.Added
		r.Added = &document.Span{Median: iv.Median, Low: min(iv.Low, iv.Median), High: max(iv.High, iv.Median), Text: text}
	}
	r.Verdict = markOf(c.Verdict, c.P, c.Adjusted, c.Detectable)
	if c.Ratio != nil {
		r.Tone = tables.Tone(m, c.Verdict, c.Ratio.Median-1)
		r.Ratio = strings.TrimSpace(change(c.Ratio.Median) + " " + bounds(*c.Ratio))
	}
	if c.Share != nil && c.Verdict == model.Differs && *c.Share > 0 {
		r.Share = fmt.Sprintf("%.0f %% of the whole", 100**c.Share)
	}
}

// spanOf prints an interval in a scale.
func spanOf(scale quantity.Scale, iv *quantity.Interval) *document.Span {
	if iv == nil {
		return nil
	}
	s := &document.Span{Median: iv.Median, Low: iv.Low, High: iv.High}
	s.Text, s.Range = scale.Figure(*iv)
	return s
}

func ladderAlt(l document.Ladder) string {
	var said []string
	for _, m := range l.Metrics {
		for i, r := range m.Rungs {
			switch {
			case i == 0 && r.Figure != nil:
				said = append(said, fmt.Sprintf("%s of %s %s %s", m.Name, r.Name, r.Figure.Text, m.Unit))
			case r.Added != nil:
				said = append(said, fmt.Sprintf("%s %s %s, %s", r.Name, r.Added.Text, m.Unit, r.Verdict.Word))
			case r.Verdict.Word != "":
				said = append(said, r.Name+": "+r.Verdict.Word)
			}
		}
	}
	return "Waterfall of what each step adds: " + strings.Join(said, "; ") + ". The table below has all of it."
}
