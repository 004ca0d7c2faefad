// Package markdown writes a report as GitHub's Markdown.
package markdown

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"windtunnel/lab/phrase"
	"windtunnel/lab/report/model"
)

// Write writes the report as GitHub's Markdown: findings, the tables,
// what each step of a ladder costs, hypotheses, what failed, the published figures beside the measured, environment and
// method. Text from outside is escaped, so that it shows as it is.
func Write(w io.Writer, r *model.Report) error {
	var m markdown
	m.line("# %s", escape(r.Run.Title))
	if r.Run.Description != "" {
		m.line("%s", escape(r.Run.Description))
	}
	m.line("%s", escape(r.Run.ID+": "+r.Run.Command()))
	m.list("", r.Findings)
	for _, f := range r.Figures() {
		m.figures(f)
	}
	m.list("## Conditions", r.ConditionLines())
	for i := range r.Elsewhere {
		m.line("### %s", escape(r.Elsewhere[i].Title()))
		for _, f := range r.Elsewhere[i].Figures() {
			m.figures(f)
		}
	}
	for _, l := range r.LadderTables() {
		m.ladder(l)
	}
	m.list("## Hypotheses", r.HypothesisLines())
	m.troubles(r.Troubles())
	m.publishedTables(r.Tables)
	m.published(r.Beside())
	m.list("## Validity", r.ValidityLines())
	m.list("## Notes", r.Notes)
	m.facts("## Environment", r.Facts())
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

// table writes escaped cells; a column of words stands to the left.
func (m *markdown) table(heads []string, words map[int]bool, rows [][]string) {
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(heads)
	rule := make([]string, len(heads))
	for i := range rule {
		if rule[i] = "---:"; words[i] {
			rule[i] = "---"
		}
	}
	row(rule)
	for _, cells := range rows {
		row(cells)
	}
	m.line("%s", strings.TrimSuffix(b.String(), "\n"))
}

func (m *markdown) figures(f model.Figures) {
	m.line("## %s", escape(f.Title))
	heads, words := []string{"scenario"}, map[int]bool{0: true}
	for i, c := range f.Columns {
		heads = append(heads, escape(described(c)))
		words[i+1] = c.Text
	}
	var rows [][]string
	for i, name := range f.Names {
		row := []string{escape(name)}
		for _, c := range f.Columns {
			row = append(row, escape(c.Cells[i].Line(true)))
		}
		if why := f.Rows[i].Absent(); why != "" && len(row) > 1 {
			row[1] = why
		}
		rows = append(rows, row)
	}
	m.table(heads, words, rows)
	m.legend(f.Legend())
}

func described(c model.Column) string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " in " + c.Unit
}

func (m *markdown) legend(lines []string) {
	for _, l := range lines {
		m.line("%s", escape(l))
	}
}

func (m *markdown) ladder(t model.LadderTable) {
	m.line("## %s", escape(t.Title))
	heads := []string{"step", "median", "added", "ratio to the step before", "95 % interval", "of the last step"}
	var rows [][]string
	for _, l := range t.Lines {
		if l.Heading != "" {
			rows = append(rows, []string{"**" + escape(l.Heading) + "**", "", "", "", "", ""})
			continue
		}
		row := []string{l.Step, l.Figure, l.Added, strings.TrimSpace(l.Ratio + " " + l.Mark), l.Range, l.Share}
		for i := range row {
			row[i] = escape(row[i])
		}
		rows = append(rows, row)
	}
	m.table(heads, map[int]bool{0: true}, rows)
	m.legend(t.Legend)
}

func (m *markdown) troubles(list []model.Trouble) {
	var lines []string
	for _, t := range list {
		lines = append(lines, t.String())
	}
	m.list("## Skipped and failed", lines)
}

func (m *markdown) published(list []model.Beside) {
	if len(list) == 0 {
		return
	}
	m.line("## Published beside measured")
	heads := []string{"scenario", "what", "published", "measured", "ratio published", "ratio measured", "source"}
	var rows [][]string
	for _, b := range list {
		source := b.Source
		if b.Note != "" {
			source += " (" + b.Note + ")"
		}
		row := []string{b.Scenario, b.Label(), b.Printed, b.MeasuredText(), b.PublishedRatioText(), b.MeasuredRatioText(), source}
		for i := range row {
			row[i] = escape(row[i])
		}
		rows = append(rows, row)
	}
	m.table(heads, map[int]bool{0: true, 1: true, 6: true}, rows)
}

func (m *markdown) facts(title string, facts []model.Fact) {
	if len(facts) == 0 {
		return
	}
	m.line("%s", title)
	var rows [][]string
	for _, f := range facts {
		rows = append(rows, []string{escape(f.Name), escape(f.Value)})
	}
	m.table([]string{"what", "value"}, map[int]bool{0: true, 1: true}, rows)
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

// fenced writes lines as they are, within a fence that none of them closes.
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

// escape makes text show as it is in GitHub's Markdown, within a table too.
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
