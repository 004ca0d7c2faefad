// Package markdown writes a document as GitHub's Markdown.
package markdown

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"windtunnel/internal/lists"
	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
)

// Write writes a document as GitHub's Markdown. It escapes all text, so that no text acts as
// Markdown.
func Write(w io.Writer, d document.Document) error {
	var m markdown
	if d.Title != "" {
		m.line("# %s", escape(d.Title))
	}
	for _, l := range d.Links {
		m.line("[%s](%s)", escape(l.Text), l.URL)
	}
	m.lines(d.Lead)
	m.lines(d.Lines...)
	for _, s := range d.Undrawn() {
		m.section(&s, "##")
	}
	if _, err := io.WriteString(w, m.out.String()); err != nil {
		return fmt.Errorf("write %q as Markdown: %w", d.Title, err)
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

// lines writes a paragraph for each text.
func (m *markdown) lines(texts ...string) {
	for _, text := range texts {
		if text != "" {
			m.line("%s", escape(text))
		}
	}
}

// section writes a section. level is the sign of its heading.
func (m *markdown) section(s *document.Section, level string) {
	switch {
	case s.Reference && level != "##":
		m.line("<details><summary>%s</summary>", escape(s.Title))
		defer m.line("</details>")
	case s.Title != "":
		m.line("%s %s", level, escape(s.Title))
	}
	m.lines(s.Lead)
	items := lists.Map(s.Sentences, func(text string) string { return "- " + escape(text) })
	for _, t := range s.Terms {
		items = append(items, "- **"+escape(t.Name)+":** "+escape(t.Text))
	}
	if items != nil {
		m.line("%s", strings.Join(items, "\n"))
	}
	for _, t := range s.Tables {
		m.table(t)
	}
	for _, c := range s.Code {
		m.code(c)
	}
	m.lines(s.Notes...)
	for i := range s.Sections {
		m.section(&s.Sections[i], level+"#")
	}
}

// table writes a table. Words are aligned left, figures right.
func (m *markdown) table(t document.Table) {
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	var heads, rule []string
	for _, c := range t.Columns {
		head := escape(c.Name)
		if c.Unit != "" {
			head += " in " + escape(c.Unit)
		}
		heads = append(heads, head)
		if c.Words {
			rule = append(rule, "---")
		} else {
			rule = append(rule, "---:")
		}
	}
	row(heads)
	row(rule)
	for _, r := range t.Rows {
		cells := make([]string, len(heads))
		if len(r.Cells) == 1 {
			cells[0] = "**" + escape(r.Cells[0].Text) + "**"
		} else {
			for i, c := range r.Cells {
				cells[i] = escape(c.String())
			}
		}
		if len(r.Notes) > 0 {
			cells[len(cells)-1] = strings.TrimSpace(cells[len(cells)-1] + " (" + escape(strings.Join(r.Notes, "; ")) + ")")
		}
		row(cells)
	}
	m.line("%s", strings.TrimSuffix(b.String(), "\n"))
}

// code writes lines in a code block. Its fence is longer than any in the lines.
func (m *markdown) code(c document.Code) {
	lines := lists.Map(c.Lines, phrase.Printable)
	text := strings.Join(lines, "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if c.Title != "" {
		m.line("<details><summary>%s</summary>", escape(c.Title))
	}
	m.line("%ssh\n%s\n%s", fence, text, fence)
	if c.Title != "" {
		m.line("</details>")
	}
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
