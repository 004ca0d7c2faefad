package html

import (
	"fmt"
	"strings"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
)

// ladder shows a ladder of the report: a chart for each metric.
type ladder struct {
	ID      string         `json:"id"`
	Title   string         `json:"title"`
	Metrics []ladderMetric `json:"metrics"`
	Alt     string         `json:"-"`
}

// ladderMetric is the waterfall chart of one metric. Figures are in SI units; By is the
// factor from Unit to the SI unit.
type ladderMetric struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	By    float64 `json:"by"`
	Rungs []rung  `json:"rungs"`
}

// rung is one step of a waterfall chart.
type rung struct {
	Name     string `json:"name"`
	Scenario string `json:"scenario"`
	Figure   *span  `json:"figure,omitempty"` // the scenario's figure; nil if not measured
	Added    *span  `json:"added,omitempty"`  // figure less that of the rung before; nil for the first rung
	Verdict  mark   `json:"verdict"`
	Tone     string `json:"tone"`            // worse, better or neither
	Ratio    string `json:"ratio,omitempty"` // the change in percent, with its interval
	Share    string `json:"share,omitempty"` // cost of the step as a share of the last rung's figure
	Paint    paint  `json:"paint"`
}

// span is a median with its interval, as numbers and as text.
type span struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Text   string  `json:"text"`
	Range  string  `json:"range,omitempty"`
}

func (b *builder) ladders() (list []ladder) {
	for i := range b.r.Ladders {
		l := &b.r.Ladders[i]
		out := ladder{ID: fmt.Sprintf("ladder-%d", i), Title: l.Title}
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

func (b *builder) waterfall(l *model.Ladder, m sample.Metric, lines []tables.LadderLine, scale quantity.Scale) ladderMetric {
	out := ladderMetric{Name: m.Label(), Unit: scale.Unit, By: scale.By}
	for i, s := range l.Steps {
		r := rung{Name: s.Name, Scenario: s.Scenario, Paint: b.paints[s.Scenario]}
		if c := s.Cost(m); c != nil {
			if r.Figure = spanOf(scale, c.Figure); r.Figure != nil {
				r.Figure.Text = lines[i].Figure
			}
			if i > 0 {
				r.add(lines[i].Added, m, c)
			}
		}
		out.Rungs = append(out.Rungs, r)
	}
	return out
}

// add sets the cost of the rung's step. text is the cost as the report prints it; "" if the
// report has no cost for the step.
func (r *rung) add(text string, m sample.Metric, c *model.Cost) {
	if text != "" {
		iv := c.Added
		r.Added = &span{Median: iv.Median, Low: min(iv.Low, iv.Median), High: max(iv.High, iv.Median), Text: text}
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
func spanOf(scale quantity.Scale, iv *quantity.Interval) *span {
	if iv == nil {
		return nil
	}
	s := &span{Median: iv.Median, Low: iv.Low, High: iv.High}
	s.Text, s.Range = scale.Figure(*iv)
	return s
}

func ladderAlt(l ladder) string {
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
