// Package markdown writes a report as GitHub's Markdown.
package markdown

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
)

// Write writes the report as GitHub's Markdown: findings, matrices, tables, conditions, ladders,
// hypotheses, failures, published figures, validity, notes, environment and method. It
// escapes all text of the report, so that no text acts as Markdown.
func Write(w io.Writer, r *model.Report) error {
	var m markdown
	m.line("# %s", escape(r.Run.Title))
	if r.Run.Description != "" {
		m.line("%s", escape(r.Run.Description))
	}
	m.line("%s", escape(strings.TrimSpace(r.Run.ID+" "+r.Run.Name)+": "+r.Run.Command()))
	if r.Run.Note != "" {
		m.line("%s", escape(r.Run.Note))
	}
	m.list("", r.Findings)
	for _, x := range r.Matrices() {
		m.table("## "+escape(x.Title()), x.Grid())
		m.lines(x.Legend)
	}
	m.figures(r.Figures())
	m.list("## Conditions", r.ConditionLines())
	for i := range r.Elsewhere {
		m.line("### %s", escape(r.Elsewhere[i].Title()))
		m.figures(r.Elsewhere[i].Figures())
	}
	for _, l := range r.LadderGrids() {
		m.table("## "+escape(l.Title), l.Grid)
		m.lines(l.Legend)
	}
	m.list("## Hypotheses", r.HypothesisLines())
	var troubles []string
	for _, t := range r.Troubles() {
		troubles = append(troubles, t.String())
	}
	m.list("## Skipped and failed", troubles)
	m.published(r.Tables)
	m.table("## Published beside measured", r.BesideGrid())
	m.list("## Validity", r.ValidityLines())
	m.list("## Notes", r.Notes)
	facts := model.Grid{Heads: []string{"what", "value"}, Words: map[int]bool{0: true, 1: true}}
	for _, f := range r.Facts() {
		facts.Add(f.Name, f.Value)
	}
	m.table("## Environment", facts)
	m.method(r)
	m.byHand(r.ByHand())
	if _, err := io.WriteString(w, m.out.String()); err != nil {
		return fmt.Errorf("write run %s as Markdown: %w", r.Run.ID, err)
	}
	return nil
}

// markdown collects blocks with an empty line between them.
type markdown struct{ out strings.Builder }

func (m *markdown) line(format string, args ...any) {
	if m.out.Len() > 0 {
		m.out.WriteByte('\n')
	}
	fmt.Fprintf(&m.out, format+"\n", args...)
}

func (m *markdown) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if title != "" {
		m.line("%s", title)
	}
	var items []string
	for _, l := range lines {
		items = append(items, "- "+escape(l))
	}
	m.line("%s", strings.Join(items, "\n"))
}

// lines writes a paragraph for each line.
func (m *markdown) lines(lines []string) {
	for _, l := range lines {
		m.line("%s", escape(l))
	}
}

// table writes a grid below a title. If the grid has no rows, it writes nothing. Words
// are aligned left, figures right.
func (m *markdown) table(title string, g model.Grid) {
	if len(g.Rows) == 0 {
		return
	}
	m.line("%s", title)
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(escaped(g.Heads))
	rule := make([]string, len(g.Heads))
	for i := range rule {
		if rule[i] = "---:"; g.Words[i] {
			rule[i] = "---"
		}
	}
	row(rule)
	for _, cells := range g.Rows {
		if cells = escaped(cells); len(cells) == 1 {
			cells = append([]string{"**" + cells[0] + "**"}, make([]string, len(g.Heads)-1)...)
		}
		row(cells)
	}
	m.line("%s", strings.TrimSuffix(b.String(), "\n"))
}

func (m *markdown) figures(tables []model.Figures) {
	for _, f := range tables {
		m.table("## "+escape(f.Title), f.Grid(func(c model.Column) string {
			if c.Unit == "" {
				return c.Name
			}
			return c.Name + " in " + c.Unit
		}, func(model.Column) bool { return true }))
		m.lines(f.Legend())
	}
}

// published writes three tables for each table of a document: the published figures, the
// measured figures, and the ratios of both.
func (m *markdown) published(tables []model.PublishedTable) {
	if len(tables) == 0 {
		return
	}
	m.line("## Published beside measured")
	m.line("%s", escape(model.AgreementRule))
	for i := range tables {
		t := &tables[i]
		m.line("### %s", escape(phrase.Capital(t.Title)))
		m.table("Published ("+escape(t.Source)+"):", t.Shape((*model.PublishedCell).PrintedText))
		m.table("Measured:", t.Shape((*model.PublishedCell).MeasuredText))
		m.table("Ratios, each to its own baseline:", t.RatioGrid())
		m.list("", t.Remarks())
	}
}

func (m *markdown) method(r *model.Report) {
	m.line("## Method")
	var items []string
	for _, p := range r.Method() {
		items = append(items, "- **"+escape(p.Title)+".** "+escape(p.Text))
	}
	m.line("%s", strings.Join(items, "\n"))
	again := r.Repeat()
	lines := again.Run
	if len(again.Steps) > 0 {
		lines = append(lines, "", "# one trial of "+phrase.Printable(again.Scenario))
		for _, s := range again.Steps {
			lines = append(lines, phrase.Printable(s.Line+" # "+s.Role+" on "+s.On))
		}
	}
	m.fenced("To repeat:", lines)
}

// byHand writes the lines that repeat each scenario, in <details> blocks.
func (m *markdown) byHand(list []model.ByHand) {
	if len(list) == 0 {
		return
	}
	m.line("## To repeat a test by hand")
	m.line("%s", escape(model.ByHandHint))
	for _, h := range list {
		m.line("<details><summary>%s</summary>", escape(h.Scenario))
		m.fenced("", h.Lines)
		m.line("</details>")
	}
}

// fenced writes lines in a code block. Its fence is longer than any in the lines.
func (m *markdown) fenced(title string, lines []string) {
	text := strings.Join(lines, "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if title != "" {
		m.line("%s", title)
	}
	m.line("%ssh\n%s\n%s", fence, text, fence)
}

// escape escapes text for GitHub's Markdown, also within a table.
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			r = ' '
		case strings.ContainsRune("\\`*_{}[]<>|#~$&", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func escaped(texts []string) (list []string) {
	for _, text := range texts {
		list = append(list, escape(text))
	}
	return list
}
