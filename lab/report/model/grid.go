package model

import (
	"cmp"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
)

// Grid is a table of texts, for text and Markdown.
type Grid struct {
	Heads []string
	Words map[int]bool // columns of words; the others hold figures
	Rows  [][]string   // a row of one text is the heading of the rows below it
}

// Add adds a row.
func (g *Grid) Add(cells ...string) { g.Rows = append(g.Rows, cells) }

// Grid returns the table as texts. head returns the heading of a column. A cell has
// its interval if ranged is true for the column.
func (f Figures) Grid(head func(Column) string, ranged func(Column) bool) Grid {
	g := Grid{Heads: []string{"scenario"}, Words: map[int]bool{0: true}}
	for i, c := range f.Columns {
		g.Heads, g.Words[i+1] = append(g.Heads, head(c)), c.Text
	}
	for i, name := range f.Names {
		row := []string{name}
		for _, c := range f.Columns {
			row = append(row, c.Cells[i].Line(ranged(c)))
		}
		if why := f.Rows[i].Absent(); why != "" && len(row) > 1 {
			row[1] = why
		}
		g.Add(row...)
	}
	return g
}

// LadderGrid is the table of a ladder: for each metric a row for each step. Legend has
// a sentence for each mark in the table.
type LadderGrid struct {
	Grid
	Title  string
	Legend []string
}

// LadderGrids lists the tables of the ladders that have a figure.
func (r *Report) LadderGrids() (list []LadderGrid) {
	for i := range r.Ladders {
		if g := r.Ladders[i].grid(); len(g.Rows) > 0 {
			list = append(list, g)
		}
	}
	return list
}

func (l *Ladder) grid() LadderGrid {
	g := LadderGrid{Title: titled("What each step costs", l.Title)}
	g.Heads, g.Words = []string{"step", "median", "added", "ratio to the step before", "of the last step"}, map[int]bool{0: true}
	for _, m := range climbed {
		lines, scale := l.Lines(m)
		if lines == nil {
			continue
		}
		heading := m.Label()
		if scale.Unit != "" {
			heading += ", " + scale.Unit
		}
		g.Add(heading)
		for _, line := range lines {
			g.Add(line.Step, line.Figure, line.Added, strings.Join(strings.Fields(line.Ratio+" "+line.Range+" "+line.Mark), " "), line.Share)
		}
	}
	var marks []ratioMark
	for _, s := range l.Steps {
		for _, c := range s.Costs {
			if c.Ratio != nil {
				marks = append(marks, ratioMark{s.Name + ", " + c.Metric.Label(), c.Verdict, c.Detectable, c.Ratio.Median})
			}
		}
	}
	g.Legend = legend(marks)
	return g
}

// BesideGrid returns the published figures that are in no table. The last column names
// the document.
func (r *Report) BesideGrid() Grid {
	g := Grid{Heads: []string{"scenario", "what", "published", "measured", "ratio published", "ratio measured", "source"}, Words: map[int]bool{0: true, 1: true, 6: true}}
	for _, b := range r.Beside() {
		source := b.Source
		if b.Note != "" {
			source += " (" + b.Note + ")"
		}
		g.Add(b.Scenario, b.Label(), b.Printed, b.MeasuredText(), b.PublishedRatioText(), b.MeasuredRatioText(), source)
	}
	return g
}

// Shape returns a grid with the rows and columns of the document's table. text returns
// the text of each cell.
func (t *PublishedTable) Shape(text func(*PublishedCell) string) Grid {
	g := Grid{Heads: append([]string{t.Corner}, t.Columns...), Words: map[int]bool{0: true}}
	for _, r := range t.Rows {
		row := []string{r.Name}
		for _, c := range r.Cells {
			row = append(row, text(c))
		}
		g.Add(row...)
	}
	return g
}

// RatioGrid returns the published and the measured ratios with their agreement.
func (t *PublishedTable) RatioGrid() Grid {
	g := Grid{Heads: []string{"row", "column", "ratio of", "published", "measured", "verdict"}, Words: map[int]bool{0: true, 1: true, 2: true, 5: true}}
	for _, c := range t.Ratios() {
		g.Add(c.Row, c.Column, c.Scenario+" / "+c.Against, c.PublishedRatioText(), c.MeasuredRatioText(), c.Verdict())
	}
	return g
}

// SideBySide returns one row for each figure of the table: published and measured, each
// with its ratio to the baseline, and the verdict. If the tool has CPU figures of its
// own, they have a separate column.
func (t *PublishedTable) SideBySide() Grid {
	byTool := slices.ContainsFunc(t.Cells(), func(c *PublishedCell) bool { return c.ByTool != nil })
	g := Grid{Heads: []string{cmp.Or(t.Corner, "row"), "column", "scenario", "published", "measured"}, Words: map[int]bool{0: true, 1: true, 2: true}}
	if byTool {
		g.Heads[4] = "measured (CPU: by the lab's meter)"
		g.Heads = append(g.Heads, "CPU by the tool itself")
	}
	g.Words[len(g.Heads)+2] = true
	g.Heads = append(g.Heads, "published ratio", "measured ratio", "verdict")
	for _, c := range t.Cells() {
		row := []string{c.Row, c.Column, c.Scenario, c.Printed, strings.TrimSpace(c.MeasuredText() + " " + c.MeasuredRange())}
		if byTool {
			row = append(row, c.ByToolText())
		}
		verdict := c.Verdict()
		if sign := c.Agreement.Sign(); sign != "" {
			verdict = sign + " " + verdict
		}
		g.Add(append(row, c.PublishedRatioText(), c.MeasuredRatioText(), cmp.Or(verdict, "–"))...)
	}
	return g
}

// Sources returns a line for each document, with the scenarios that it has figures of.
func (r *Report) Sources() (lines []string) {
	var by phrase.Groups
	for _, row := range r.BesideGrid().Rows {
		by.Add(row[6], row[0])
	}
	for source, scenarios := range by.All() {
		lines = append(lines, strings.Join(scenarios, ", ")+": "+source+".")
	}
	return lines
}
