package tables

import (
	"slices"
	"strings"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
)

// LadderLine is the printed line of one step in one metric.
type LadderLine struct {
	Step   string // "+ the bridge"
	Figure string // median of the step's scenario
	Added  string // Figure less that of the step before, "+0.12"; empty if Adds is false
	Ratio  string // to the step before within blocks, "1.18"
	Range  string // of Ratio, "[1.15, 1.22]"
	Share  string // of the last step's figure, "10 %"
	Mark   string // "~" no difference shows, "?" suggested, "…" too few trials
}

// Lines returns a line for each step, and the scale of the figures; none if no step
// has the metric. All figures have the same number of decimals. So the printed
// figure of a step and the printed addition of the next step sum exactly.
func Lines(l *model.Ladder, m sample.Metric) (lines []LadderLine, scale quantity.Scale) {
	var figures []float64
	for i := range l.Steps {
		if c := l.Steps[i].Cost(m); c != nil && c.Figure != nil {
			figures = append(figures, c.Figure.Median)
		}
	}
	if len(figures) == 0 {
		return nil, scale
	}
	scale = quantity.ScaleOf(m, figures...)
	// At least three significant digits of the largest figure and two of the smallest.
	decimals := max(quantity.Significant(slices.Max(figures)/scale.By), quantity.Significant(slices.Min(figures)/scale.By)-1)
	below := 0.0
	for i := range l.Steps {
		g := &l.Steps[i]
		line, c := line(g, m), g.Cost(m)
		if c != nil && c.Figure != nil {
			figure := quantity.Rounded(c.Figure.Median/scale.By, decimals)
			line.Figure = quantity.Grouped(figure, decimals)
			if c.Adds() {
				line.Added = quantity.Signed(figure-below, decimals)
			}
			below = figure
		}
		lines = append(lines, line)
	}
	return lines, scale
}

// line returns the step's line of m without Figure and Added.
func line(g *model.Rung, m sample.Metric) LadderLine {
	line := LadderLine{Step: g.Name, Figure: "no figures"}
	if g.From != "" {
		line.Step = "+ " + g.Name
	}
	c := g.Cost(m)
	if c == nil {
		return line
	}
	if c.Ratio != nil {
		line.Ratio, line.Range = quantity.Ratio(*c.Ratio)
	}
	if c.Share != nil {
		line.Share = strings.TrimPrefix(quantity.Signed(100**c.Share, 0), "+") + " %"
	}
	line.Mark = verdicts.Marks[c.Verdict]
	return line
}

// LadderSection returns the table of the ladder: for each metric a row for each step.
func LadderSection(l *model.Ladder) document.Section {
	t := document.Table{Columns: append(document.Words("step"), document.Figures("median", "added", "ratio to the step before", "of the last step")...)}
	t.Columns[4].Optional = true
	for _, m := range verdicts.Climbed {
		lines, scale := Lines(l, m)
		if lines == nil {
			continue
		}
		t.Add(strings.TrimSuffix(m.Label()+", "+scale.Unit, ", "))
		for i, line := range lines {
			cells := t.Add(line.Step, line.Figure, line.Added, "", line.Share).Cells
			if c := l.Steps[i].Cost(m); c != nil && c.Ratio != nil {
				cells[2].Tone = Tone(m, c.Verdict, c.Ratio.Median-1)
			}
			cells[3] = document.Cell{Text: line.Ratio, Range: line.Range, Mark: line.Mark}
		}
	}
	var marks []verdicts.RatioMark
	for _, s := range l.Steps {
		for _, c := range s.Costs {
			if c.Ratio != nil {
				marks = append(marks, verdicts.RatioMark{Name: s.Name + ", " + c.Metric.Label(), Verdict: c.Verdict, Detectable: c.Detectable, Ratio: c.Ratio.Median})
			}
		}
	}
	return document.Section{Title: Titled("What each step costs", l.Title), Tables: t.List(), Notes: verdicts.Legend(marks)}
}

// Titled adds the suite's title to a heading.
func Titled(heading, title string) string {
	if title != "" {
		heading += ": " + title
	}
	return heading
}

// Tone returns "worse" or "better" for a change of metric m. It returns "" if
// the verdict is not Differs, or if m has no better direction.
func Tone(m sample.Metric, v model.Verdict, change float64) string {
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
