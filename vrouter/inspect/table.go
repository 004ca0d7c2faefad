package inspect

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
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

// Options describe the terminal.
type Options struct {
	Width  int  // terminal cells; 0: unlimited
	Colour bool // bold headings
}

// Field is a field of one object.
type Field struct {
	Name, Value string
}

// Add appends a row with a cell per column. It replaces control characters, which
// could control the terminal.
func (t *Table) Add(cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	t.Rows = append(t.Rows, cells)
}

// printable replaces unprintable characters by U+FFFD.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// shorten truncates s to a width in terminal cells and ends it with ….
func shorten(s string, width int) string { return ansi.Truncate(s, width, "…") }

// pad fills s with spaces to a width in terminal cells.
func pad(s string, width int, right bool) string {
	blanks := strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
	if right {
		return blanks + s
	}
	return s + blanks
}
