// Package text writes a document for a terminal.
package text

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"windtunnel/internal/screen"
	"windtunnel/lab/report/document"
)

// Options says what the terminal can show. A width of less than 40 counts as 40, 0 as 100.
type Options = screen.Terminal

// Write writes a document without its reference sections, and without the texts that explain
// how to read a section.
func Write(w io.Writer, d document.Document, o Options) error {
	t := &terminal{width: max(cmp.Or(o.Width, 100), 40)}
	if o.Colour {
		t.title, t.faint, t.alarm = t.title.Bold(true), t.faint.Faint(true), t.alarm.Foreground(lipgloss.Red)
	}
	if d.Title != "" {
		t.paragraph(t.title, "", d.Title)
	}
	for _, line := range d.Lines {
		t.paragraph(t.faint, "  ", line)
	}
	for _, s := range d.Undrawn() {
		t.section(&s)
	}
	if _, err := w.Write(t.out.Bytes()); err != nil {
		return fmt.Errorf("write %q as text: %w", d.Title, err)
	}
	return nil
}

// terminal collects the output.
type terminal struct {
	out                        bytes.Buffer
	width                      int
	plain, title, faint, alarm lipgloss.Style
}

func (t *terminal) section(s *document.Section) {
	if s.Reference {
		return
	}
	t.out.WriteByte('\n')
	if s.Title != "" {
		t.paragraph(t.title, "", strings.TrimSpace(s.Title+"  "+s.Sketch))
	}
	style := map[document.Style]lipgloss.Style{document.Faint: t.faint, document.Alarm: t.alarm}[s.Style]
	for _, line := range s.Sentences {
		t.paragraph(style, "  ", "• "+line)
	}
	for _, term := range s.Terms {
		t.paragraph(style, "  ", term.Name+": "+term.Text)
	}
	for _, table := range s.Tables {
		t.table(table)
	}
	for _, code := range s.Code {
		t.paragraph(t.title, "", code.Title)
		for _, line := range code.Lines {
			t.indented(t.plain, line)
		}
	}
	for _, note := range s.Notes {
		t.paragraph(t.faint, "  ", note)
	}
	for i := range s.Sections {
		t.section(&s.Sections[i])
	}
}

// paragraph writes text wrapped to the width. Lines after the first are indented.
func (t *terminal) paragraph(style lipgloss.Style, indent, text string) {
	for i, line := range screen.Lines(text, t.width-len(indent)) {
		if i > 0 {
			line = indent + line
		}
		t.out.WriteString(style.Render(line) + "\n")
	}
}

// indented writes text that belongs to the line above it.
func (t *terminal) indented(style lipgloss.Style, text string) {
	const indent = "    "
	for i, line := range screen.Lines(text, t.width-len(indent)-2) {
		if i > 0 {
			line = "  " + line
		}
		t.out.WriteString(style.Render(indent+line) + "\n")
	}
}
