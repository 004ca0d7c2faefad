package text

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"windtunnel/internal/phrase"
	"windtunnel/internal/screen"
	"windtunnel/lab/report/document"
)

// leastColumn is the smallest width to which a column of words is wrapped.
const leastColumn = 16

// table writes a table in the first form that fits the width: with all columns; without optional
// columns; split, or else with wrapped words, without ranges, or both; as a list.
func (t *terminal) table(table document.Table) {
	table = shown(table)
	brief := only(table, func(_ int, c document.Column) bool { return !c.Optional })
	switch {
	case t.fits(table, false):
		t.grid(table)
	case t.fits(brief, false):
		t.grid(brief)
	case table.Split:
		for i, part := range t.split(brief) {
			if i > 0 {
				t.out.WriteByte('\n')
			}
			if !t.fits(part, false) {
				part = withoutRanges(part)
			}
			t.gridOrList(part)
		}
	case t.fits(brief, true):
		t.grid(brief)
	default:
		t.gridOrList(withoutRanges(brief))
	}
}

func (t *terminal) gridOrList(table document.Table) {
	if t.fits(table, true) {
		t.grid(table)
	} else {
		t.list(table)
	}
}

// shown returns the printable table without its minor rows and empty columns, and without the
// ranges of plain columns.
func shown(table document.Table) document.Table {
	rows := slices.Clone(table.Rows)
	rows = slices.DeleteFunc(rows, func(r document.Row) bool { return r.Minor })
	headed := slices.ContainsFunc(rows, func(r document.Row) bool { return len(r.Cells) == 1 })
	filled := make([]bool, len(table.Columns))
	for i := range rows {
		cells := slices.Clone(rows[i].Cells)
		for k := range cells {
			if table.Columns[k].Plain {
				cells[k].Range = ""
			}
			cells[k] = document.Cell{Text: phrase.Printable(cells[k].Text), Range: phrase.Printable(cells[k].Range), Mark: cells[k].Mark}
			filled[k] = filled[k] || cells[k].String() != "" && len(cells) > 1
		}
		if headed && len(cells) > 1 {
			cells[0].Text = "  " + cells[0].Text
		}
		rows[i].Cells = cells
	}
	table.Rows = rows
	return only(table, func(i int, _ document.Column) bool { return i == 0 || filled[i] })
}

// only returns the table with the columns that keep selects.
func only(table document.Table, keep func(int, document.Column) bool) document.Table {
	part := document.Table{Split: table.Split}
	for i, c := range table.Columns {
		if keep(i, c) {
			part.Columns = append(part.Columns, c)
		}
	}
	for _, row := range table.Rows {
		cells := row.Cells
		if len(cells) > 1 {
			row.Cells = nil
			for i, c := range table.Columns {
				if keep(i, c) {
					row.Cells = append(row.Cells, cells[i])
				}
			}
		}
		part.Rows = append(part.Rows, row)
	}
	return part
}

func withoutRanges(table document.Table) document.Table {
	rows := slices.Clone(table.Rows)
	for i := range rows {
		rows[i].Cells = slices.Clone(rows[i].Cells)
		for k := range rows[i].Cells {
			rows[i].Cells[k].Range = ""
		}
	}
	table.Rows = rows
	return table
}

// split divides the columns of a table into tables that fit. Each has the first column.
func (t *terminal) split(table document.Table) (list []document.Table) {
	of := func(columns []int) document.Table {
		return only(table, func(i int, _ document.Column) bool { return i == 0 || slices.Contains(columns, i) })
	}
	var parts [][]int
	var part []int
	for i := 1; i < len(table.Columns); i++ {
		if len(part) > 0 && !t.fits(of(append(slices.Clone(part), i)), false) {
			parts, part = append(parts, part), nil
		}
		part = append(part, i)
	}
	// A last table of one column takes a second column from the table before it.
	if n := len(parts) - 1; n >= 0 && len(part) == 1 && len(parts[n]) > 2 {
		last := len(parts[n]) - 1
		part = []int{parts[n][last], part[0]}
		parts[n] = parts[n][:last]
	}
	for _, columns := range append(parts, part) {
		list = append(list, of(columns))
	}
	return list
}

// texts returns the headings and the cells of a table, without the rows that are headings.
func texts(table document.Table) (heads []string, rows [][]string) {
	for _, c := range table.Columns {
		if c.Words {
			heads = append(heads, c.Name)
		} else {
			heads = append(heads, stacked(c.Name, c.Unit))
		}
	}
	for _, row := range table.Rows {
		if len(row.Cells) > 1 {
			rows = append(rows, cellsOf(row))
		}
	}
	return heads, rows
}

func cellsOf(row document.Row) (cells []string) {
	indent := len(row.Cells[0].Text) - len(strings.TrimLeft(row.Cells[0].Text, " "))
	for _, c := range row.Cells {
		cells = append(cells, c.String())
	}
	cells[0] = strings.Repeat(" ", indent) + cells[0]
	return cells
}

// widths returns the widths of a table's columns. If wrap is true, columns of words after the
// first are narrower where the table does not fit.
func (t *terminal) widths(table document.Table, wrap bool) []int {
	heads, rows := texts(table)
	widths := screen.Widths(append(rows, heads)...)
	if wrap {
		whole := slices.Clone(widths)
		screen.Shrink(widths, t.width, func(i int) int {
			if i > 0 && table.Columns[i].Words {
				return min(whole[i], leastColumn)
			}
			return whole[i]
		})
	}
	return widths
}

// fits reports whether the terminal is wide enough for a table.
func (t *terminal) fits(table document.Table, wrap bool) bool {
	return screen.Total(t.widths(table, wrap)) <= t.width
}

// grid writes a table in columns. Words are aligned left, figures right.
func (t *terminal) grid(table document.Table) {
	heads, _ := texts(table)
	widths := t.widths(table, true)
	line := func(cells []string, style lipgloss.Style) {
		text := screen.Row(cells, widths, func(i int) bool { return !table.Columns[i].Words })
		t.out.WriteString(style.Render(text) + "\n")
	}
	upper, lower := make([]string, len(heads)), make([]string, len(heads))
	for i, head := range heads {
		var below bool
		if upper[i], lower[i], below = strings.Cut(head, "\n"); !below {
			upper[i], lower[i] = "", head
		}
	}
	if strings.Join(upper, "") != "" {
		line(upper, t.title)
	}
	line(lower, t.title)
	t.out.WriteString(t.faint.Render(strings.Repeat("─", screen.Total(widths))) + "\n")
	for _, row := range table.Rows {
		if len(row.Cells) == 1 {
			t.paragraph(t.title, "", row.Cells[0].Text)
			continue
		}
		cells, tall := make([][]string, len(widths)), 1
		for i, text := range cellsOf(row) {
			if cells[i] = []string{text}; i > 0 {
				cells[i] = broken(text, widths[i])
			}
			tall = max(tall, len(cells[i]))
		}
		for at := range tall {
			texts := make([]string, len(cells))
			for i := range cells {
				if at < len(cells[i]) {
					texts[i] = cells[i][at]
				}
			}
			line(texts, t.plain)
		}
		t.notes(row)
	}
}

func (t *terminal) notes(row document.Row) {
	for _, note := range row.Notes {
		t.indented(t.faint, note)
	}
}

// broken wraps a text. It breaks a word only if the word alone is wider.
func broken(text string, width int) (lines []string) {
	for _, part := range screen.Lines(text, width) {
		r := []rune(part)
		for len(r) > width && width > 0 {
			lines, r = append(lines, string(r[:width])), r[width:]
		}
		lines = append(lines, string(r))
	}
	return lines
}

// list writes a table without columns: a line for each row.
func (t *terminal) list(table document.Table) {
	for _, row := range table.Rows {
		if len(row.Cells) == 1 {
			t.paragraph(t.title, "", row.Cells[0].Text)
			continue
		}
		var names, cells []string
		for i, cell := range row.Cells {
			switch c, text := table.Columns[i], cell.String(); {
			case text == "":
			case c.Words:
				names = append(names, text)
			default:
				cells = append(cells, strings.Join(strings.Fields(c.Name+" "+c.Unit+" "+text), " "))
			}
		}
		line := strings.Join(names, ", ")
		if len(cells) > 0 {
			line = "• " + line + ": " + strings.Join(cells, ", ")
		}
		t.paragraph(t.plain, "  ", line)
		t.notes(row)
	}
}

// stacked breaks a heading into two lines so that the column is narrow. It breaks
// before the unit if that needs at most one character more.
func stacked(name, unit string) string {
	words := strings.Fields(name + " " + unit)
	best := strings.Join(words, " ")
	most := len(best)
	for i := 1; i < len(words); i++ {
		upper, lower := strings.Join(words[:i], " "), strings.Join(words[i:], " ")
		width := max(lipgloss.Width(upper), lipgloss.Width(lower))
		if lower == unit {
			width--
		}
		if width <= most {
			best, most = upper+"\n"+lower, width
		}
	}
	return best
}
