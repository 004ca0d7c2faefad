package text

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"windtunnel/lab/phrase"
	"windtunnel/lab/report/model"
)

// gap is the space between columns of a terminal table.
const gap = 2

// parts splits a table that is wider than the terminal into several tables. Each has
// some of the columns.
func (t *terminal) parts(f model.Figures) (list []model.Figures) {
	part := f
	part.Columns = nil
	for _, c := range f.Columns {
		more := part
		more.Columns = append(slices.Clone(part.Columns), c)
		if heads, rows := cellsOf(more, true); len(part.Columns) > 0 && widthOf(heads, rows) > t.width {
			list = append(list, part)
			more.Columns = more.Columns[len(part.Columns):]
		}
		part = more
	}
	// A last table of one column takes a second column from the table before it.
	if n := len(list) - 1; n >= 0 && len(part.Columns) == 1 && len(list[n].Columns) > 2 {
		last := len(list[n].Columns) - 1
		part.Columns = slices.Insert(part.Columns, 0, list[n].Columns[last])
		list[n].Columns = list[n].Columns[:last]
	}
	return append(list, part)
}

// cellsOf returns the table's headings and rows, with the intervals if ranged.
func cellsOf(f model.Figures, ranged bool) (heads []string, rows [][]string) {
	heads = []string{"scenario"}
	for _, c := range f.Columns {
		heads = append(heads, stacked(c))
	}
	for i, name := range f.Names {
		row := []string{name}
		for _, c := range f.Columns {
			row = append(row, c.Cells[i].Line(ranged && c.Ranged))
		}
		if why := f.Rows[i].Absent(); why != "" && len(row) > 1 {
			row[1] = why
		}
		rows = append(rows, clean(row))
	}
	return heads, rows
}

// stacked breaks a heading into two lines so that the column is narrow. It breaks
// before the unit if that needs at most one character more.
func stacked(c model.Column) string {
	if c.Text {
		return c.Name
	}
	words := strings.Fields(c.Name + " " + c.Unit)
	best := strings.Join(words, " ")
	most := len(best)
	for i := 1; i < len(words); i++ {
		upper, lower := strings.Join(words[:i], " "), strings.Join(words[i:], " ")
		width := max(lipgloss.Width(upper), lipgloss.Width(lower))
		if lower == c.Unit {
			width--
		}
		if width <= most {
			best, most = upper+"\n"+lower, width
		}
	}
	return best
}

// wordsOf marks the columns that hold words and not figures. Column 0 has the
// scenario's name.
func wordsOf(f model.Figures) map[int]bool {
	words := map[int]bool{0: true}
	for i, c := range f.Columns {
		words[i+1] = c.Text
	}
	return words
}

func widthOf(heads []string, rows [][]string) int {
	widths := make([]int, len(heads))
	for _, row := range append(rows[:len(rows):len(rows)], heads) {
		for i, text := range row {
			widths[i] = max(widths[i], lipgloss.Width(text))
		}
	}
	total := gap * (len(heads) - 1)
	for _, w := range widths {
		total += w
	}
	return total
}

// wrap breaks text between words into lines of at most width columns; a word
// that is longer stands alone.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && lipgloss.Width(line)+1+lipgloss.Width(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func clean(row []string) []string {
	for i := range row {
		row[i] = phrase.Printable(row[i])
	}
	return row
}

// withoutEmpty leaves out the columns that no row has.
func withoutEmpty(heads []string, rows [][]string) ([]string, [][]string) {
	for col := len(heads) - 1; col >= 0; col-- {
		if slices.ContainsFunc(rows, func(row []string) bool { return row[col] != "" }) {
			continue
		}
		heads = slices.Delete(heads, col, col+1)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], col, col+1)
		}
	}
	return heads, rows
}

// sources names each document once, with the scenarios whose figures it has
// and what is to be known of them.
func sources(list []model.Beside) []string {
	var order []string
	of := make(map[string]map[string]bool)
	for _, b := range list {
		text := b.Source
		if b.Note != "" {
			text += " (" + b.Note + ")"
		}
		if of[text] == nil {
			of[text] = make(map[string]bool)
			order = append(order, text)
		}
		of[text][b.Scenario] = true
	}
	var lines []string
	for _, text := range order {
		lines = append(lines, fmt.Sprintf("%s: %s.", strings.Join(slices.Sorted(maps.Keys(of[text])), ", "), text))
	}
	return lines
}

// Wrap breaks text between words into lines of at most width columns, of which
// those after the first begin with indent; a word that is longer stands alone.
// What a terminal would obey is replaced by spaces.
func Wrap(text string, width int, indent string) string {
	return strings.Join(wrap(phrase.Printable(text), max(width-lipgloss.Width(indent), 1)), "\n"+indent)
}
