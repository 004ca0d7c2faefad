package inspect

import (
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/internal/screen"
)

// Table is a table of text cells, independent of the terminal.
type Table struct {
	Columns []Column
	Rows    [][]string // one cell per column
	Empty   string     // text of a table without rows: "no flows"
}

// Column is a column of a table, and how to fit it to a narrow terminal.
type Column struct {
	Name  string
	Right bool // right-aligned, for numbers
	Least int  // smallest width in terminal cells; 0: never shortened
	Leave int  // order of hiding on narrow terminals, highest first; 0: never hidden
}

// Fields are the names and values of one object's fields.
type Fields [][]string

// Add adds a field.
func (f *Fields) Add(name, value string) { *f = append(*f, []string{name, phrase.Printable(value)}) }

// String formats the fields, one per line, with aligned names.
func (f Fields) String() string {
	widths := screen.Widths(f...)
	var b strings.Builder
	for _, row := range f {
		b.WriteString(screen.Row(row, widths, func(int) bool { return false }) + "\n")
	}
	return b.String()
}

// Add appends a row with a cell per column. It replaces control characters, which
// could control the terminal.
func (t *Table) Add(cells ...string) {
	for i, c := range cells {
		cells[i] = phrase.Printable(c)
	}
	t.Rows = append(t.Rows, cells)
}

// Render formats a table: a heading, a line per row, and the names of hidden
// columns. Columns are aligned by terminal cells, also for wide characters.
func (t Table) Render(o screen.Terminal) string {
	if len(t.Rows) == 0 {
		return t.Empty + "\n"
	}
	f := fit(t, o.Width)
	var b strings.Builder
	b.WriteString(paint(t.line(f, t.names()), bold, o.Colour) + "\n")
	for _, row := range t.Rows {
		b.WriteString(t.line(f, row) + "\n")
	}
	if len(f.hidden) > 0 {
		note := "columns hidden for lack of width: " + strings.Join(f.hidden, ", ") + " (-o json shows all)"
		b.WriteString(screen.Wrap(note, o.Width, "") + "\n")
	}
	return b.String()
}

func (t Table) names() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// line formats the visible cells of a row.
func (t Table) line(f fitted, cells []string) string {
	visible := make([]string, len(f.columns))
	for at, i := range f.columns {
		visible[at] = cells[i]
	}
	return screen.Row(visible, f.widths, func(at int) bool { return t.Columns[f.columns[at]].Right })
}

// Fields returns the cells of a row with their columns' names, without empty
// cells.
func (t Table) Fields(row int) (fields Fields) {
	for i, c := range t.Columns {
		if cell := t.Rows[row][i]; cell != "" && cell != none {
			fields.Add(c.Name, cell)
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
