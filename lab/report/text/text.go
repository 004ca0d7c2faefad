// Package text writes a report for a terminal.
package text

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"windtunnel/internal/phrase"
	"windtunnel/internal/screen"
	"windtunnel/lab/report/model"
)

// Options says what the terminal can show. A width of less than 40 counts as 40, 0 as 100.
type Options = screen.Terminal

// Write writes the report for a terminal: matrices, tables of streams and of request/response,
// failures, findings, conditions, ladders, hypotheses, published figures, validity and
// notes. It splits tables that are too wide for the terminal.
func Write(w io.Writer, r *model.Report, opts Options) error {
	t := newTerminal(opts)
	t.heading(r)
	for _, x := range r.Matrices() {
		t.title(x.Title())
		t.halves(x.Grid())
		t.faint(x.Legend)
	}
	t.figures(r.Figures())
	for i := range r.Elsewhere {
		t.title(r.Elsewhere[i].Title())
		t.figures(r.Elsewhere[i].Figures())
	}
	if list := r.Troubles(); len(list) > 0 {
		t.out.WriteByte('\n')
		for _, trouble := range list {
			t.paragraph(t.style.bad, "  ", "! "+trouble.String())
		}
	}
	t.bullets("Findings", r.Findings, t.style.plain)
	t.bullets("Conditions", r.ConditionLines(), t.style.plain)
	for _, l := range r.LadderGrids() {
		t.title(l.Title)
		if !t.fits(l.Grid) { // without the share of the last step
			l.Heads = l.Heads[:4]
			for i, row := range l.Rows {
				l.Rows[i] = row[:min(len(row), 4)]
			}
		}
		t.grid(l.Grid)
		t.faint(l.Legend)
	}
	t.bullets("Hypotheses", r.HypothesisLines(), t.style.plain)
	t.published(r)
	t.bullets("Validity", r.ValidityLines(), t.style.faint)
	t.bullets("Notes", r.Notes, t.style.faint)
	if _, err := w.Write(t.out.Bytes()); err != nil {
		return fmt.Errorf("write run %s as a table: %w", r.Run.ID, err)
	}
	return nil
}

// terminal collects the output.
type terminal struct {
	out   bytes.Buffer
	width int
	style styles
}

// styles are the text styles of the report.
type styles struct{ plain, title, faint, bad lipgloss.Style }

func newTerminal(o Options) *terminal {
	var s styles
	if o.Colour {
		s.title, s.faint, s.bad = s.title.Bold(true), s.faint.Faint(true), s.bad.Foreground(lipgloss.Red)
	}
	return &terminal{width: max(cmp.Or(o.Width, 100), 40), style: s}
}

func (t *terminal) heading(r *model.Report) {
	t.paragraph(t.style.title, "", r.Run.Title)
	e := r.Run.Environment
	facts := []string{r.Run.ID}
	if r.Run.Name != "" {
		facts = append(facts, r.Run.Name)
	}
	if e.CPUs > 0 {
		facts = append(facts, phrase.Count(e.CPUs, "CPU"))
	}
	if r.Run.Short {
		facts = append(facts, "short form")
	}
	if e.Kernel != "" {
		facts = append(facts, "Linux "+e.Kernel)
	}
	if r.Run.Status != "" {
		facts = append(facts, string(r.Run.Status))
	}
	t.paragraph(t.style.faint, "", strings.Join(facts, ", "))
	if r.Run.Note != "" {
		t.paragraph(t.style.faint, "  ", r.Run.Note)
	}
	if r.Run.Options.Command != "" {
		t.paragraph(t.style.faint, "  ", r.Run.Command())
	}
}

// figures writes tables. It splits a table that is wider than the terminal.
func (t *terminal) figures(tables []model.Figures) {
	for _, f := range tables {
		t.title(f.Title)
		for i, part := range t.parts(f) {
			if i > 0 {
				t.out.WriteByte('\n')
			}
			g := gridOf(part, true)
			if !t.fits(g) {
				g = gridOf(part, false)
			}
			t.grid(g)
		}
		t.faint(f.Legend())
	}
}

// gridOf returns the table as texts. It has intervals if ranged is true.
func gridOf(f model.Figures, ranged bool) model.Grid {
	return f.Grid(func(c model.Column) string {
		if c.Text {
			return c.Name
		}
		return stacked(c.Name, c.Unit)
	}, func(c model.Column) bool { return ranged && c.Ranged })
}

// parts splits a table that is wider than the terminal into several tables. Each has
// some of the columns.
func (t *terminal) parts(f model.Figures) (list []model.Figures) {
	part := f
	part.Columns = nil
	for _, c := range f.Columns {
		more := part
		more.Columns = append(slices.Clone(part.Columns), c)
		if len(part.Columns) > 0 && !t.fits(gridOf(more, true)) {
			list = append(list, part)
			more.Columns = more.Columns[len(part.Columns):]
		}
		part = more
	}
	// A last table of one column takes a second column from the table before it.
	if n := len(list) - 1; n >= 0 && len(part.Columns) == 1 && len(list[n].Columns) > 2 {
		last := len(list[n].Columns) - 1
		part.Columns = slices.Insert(part.Columns, 0, list[n].Columns[last])
		list[n].Columns = list[n].Columns[:last]
	}
	return append(list, part)
}

func (t *terminal) bullets(title string, lines []string, style lipgloss.Style) {
	if len(lines) == 0 {
		return
	}
	t.title(title)
	for _, line := range lines {
		t.paragraph(style, "  ", "• "+line)
	}
}

// title begins a section.
func (t *terminal) title(text string) {
	t.out.WriteByte('\n')
	t.paragraph(t.style.title, "", text)
}

// faint writes remarks.
func (t *terminal) faint(lines []string) {
	for _, line := range lines {
		t.paragraph(t.style.faint, "  ", line)
	}
}

// paragraph writes text wrapped to the width; lines after the first are
// indented.
func (t *terminal) paragraph(style lipgloss.Style, indent, text string) {
	for i, line := range screen.Lines(text, t.width-len(indent)) {
		if i > 0 {
			line = indent + line
		}
		t.out.WriteString(style.Render(line) + "\n")
	}
}
