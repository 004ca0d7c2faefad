package inspect

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Render formats a table: a heading, a line per row, and the names of hidden
// columns. Columns are aligned by terminal cells, also for wide characters.
func (t Table) Render(o Options) string {
	if len(t.Rows) == 0 {
		return t.Empty + "\n"
	}
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	l := fit(t, o.Width)
	var b strings.Builder
	b.WriteString(paint(t.line(l, names), bold, o.Colour) + "\n")
	for _, row := range t.Rows {
		b.WriteString(t.line(l, row) + "\n")
	}
	if len(l.hidden) > 0 {
		note := "columns hidden for lack of width: " + strings.Join(l.hidden, ", ") + " (-o json shows all)"
		b.WriteString(Wrap(note, o.Width, 0) + "\n")
	}
	return b.String()
}

// line formats the visible cells of a row.
func (t Table) line(l layout, cells []string) string {
	var line strings.Builder
	for at, i := range l.columns {
		if at > 0 {
			line.WriteString(strings.Repeat(" ", gap))
		}
		line.WriteString(pad(shorten(cells[i], l.widths[at]), l.widths[at], t.Columns[i].Right))
	}
	return strings.TrimRight(line.String(), " ")
}

// Wrap breaks text between words into lines of at most width terminal cells.
// The caller prints indent cells before the first line. Wrap indents the other
// lines by indent spaces. Width 0 keeps one line.
func Wrap(text string, width, indent int) string {
	words := strings.Fields(printable(text))
	if width <= 0 {
		return strings.Join(words, " ")
	}
	var b strings.Builder
	at := 0
	for _, word := range words {
		size := ansi.StringWidth(word)
		switch {
		case at == 0:
			at = indent
		case at+1+size > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += size
	}
	return b.String()
}

// Describe formats the fields of an object, one per line, with aligned names.
func Describe(fields []Field) string {
	width := 0
	for _, f := range fields {
		width = max(width, ansi.StringWidth(f.Name))
	}
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(strings.TrimRight(pad(f.Name, width+gap, false)+printable(f.Value), " ") + "\n")
	}
	return b.String()
}

// Fields returns the cells of a row with their columns' names, without empty
// cells.
func (t Table) Fields(row int) []Field {
	var fields []Field
	for i, c := range t.Columns {
		if cell := t.Rows[row][i]; cell != "" && cell != none {
			fields = append(fields, Field{c.Name, cell})
		}
	}
	return fields
}

// SGR parameters (ECMA-48).
const (
	bold  = "1"
	red   = "31"
	green = "32"
)

func paint(s, sgr string, colour bool) string {
	if !colour || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}
