package inspect

import "windtunnel/internal/phrase"

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

// Field is a field of one object.
type Field struct {
	Name, Value string
}

// Add appends a row with a cell per column. It replaces control characters, which
// could control the terminal.
func (t *Table) Add(cells ...string) {
	for i, c := range cells {
		cells[i] = phrase.Printable(c)
	}
	t.Rows = append(t.Rows, cells)
}
