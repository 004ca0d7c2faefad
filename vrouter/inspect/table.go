package inspect

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Table is rows in an operator's words, before anything is known of the
// terminal they will stand on.
type Table struct {
	Columns []Column
	Rows    [][]string // one cell a column
	Empty   string     // what to say where there is no row: "no flows"
}

// Column is one column of a table, and what may happen to it where the
// terminal is narrow.
type Column struct {
	Name  string
	Right bool // numbers
	Key   bool // the key columns' cells together name a row
	Clock bool // moves by itself: that it differs is no change worth a mark
	Least int  // may be shortened to so many cells of the terminal; 0: never
	Leave int  // left out where the width is short, the highest first; 0: never
}

// Options say what a table is printed for.
type Options struct {
	Width  int  // columns of the terminal; 0: as wide as the rows are
	Colour bool // bold headings, coloured marks
}

// Field is one line of what is known of a single object.
type Field struct {
	Name, Value string
}

// Add appends a row, a cell a column. Names come from outside: a control
// character among them may not steer the terminal.
func (t *Table) Add(cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	t.Rows = append(t.Rows, cells)
}

// printable replaces what is no visible character by U+FFFD.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// shorten cuts s to a width in terminal cells, with … where something is
// missing.
func shorten(s string, width int) string { return ansi.Truncate(s, width, "…") }

// pad fills s with blanks to a width in terminal cells.
func pad(s string, width int, right bool) string {
	blanks := strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
	if right {
		return blanks + s
	}
	return s + blanks
}
