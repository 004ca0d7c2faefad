package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"windtunnel/lab/phrase"
)

// gap is the space between columns of a terminal table.
const gap = 2

// fitted is a table as the terminal will show it.
type fitted struct {
	Figures
	ranges map[string]bool // columns, by key, whose intervals are shown
	short  bool            // sender and receiver are abbreviated
}

// fit leaves out what does not fit the width: first columns of small moment,
// then long words in the headings and the intervals of the ratios, then the
// rest by rank. left names what went.
func (t *terminal) fit(f Figures) (shown fitted, left []string) {
	first := f.first()
	shown = fitted{Figures: f, ranges: map[string]bool{first: true, "ratio": true}}
	shown.Columns = slices.Clone(f.Columns)
	for shown.width() > t.width {
		i := shown.least()
		lesser := i >= 0 && shown.Columns[i].Rank >= 4
		switch {
		case !lesser && !shown.short:
			shown.short = true
		case !lesser && shown.ranges["ratio"]:
			shown.ranges["ratio"] = false
			left = append(left, "the ratio's interval")
		case i >= 0:
			left = append(left, described(shown.Columns[i]))
			shown.Columns = slices.Delete(shown.Columns, i, i+1)
		case shown.ranges[first]:
			shown.ranges[first] = false
			left = append(left, "intervals")
		default:
			return shown, left // nothing more to give
		}
	}
	return shown, left
}

// first is the key of the first column, or "".
func (f Figures) first() string {
	if len(f.Columns) == 0 {
		return ""
	}
	return f.Columns[0].Key
}

// least is the index of the column to leave out first: the last of the highest
// rank; −1 where all have to stay.
func (f fitted) least() int {
	if len(f.Columns) == 0 {
		return -1
	}
	indices := make([]int, len(f.Columns))
	for i := range indices {
		indices[i] = i
	}
	i := slices.MaxFunc(indices, func(a, b int) int {
		return cmp.Or(cmp.Compare(f.Columns[a].Rank, f.Columns[b].Rank), cmp.Compare(a, b))
	})
	if f.Columns[i].Rank == 0 {
		return -1
	}
	return i
}

func described(c Column) string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " in " + c.Unit
}

func (f fitted) heads() []string {
	heads := []string{"scenario"}
	for _, c := range f.Columns {
		heads = append(heads, stacked(c, f.short))
	}
	return heads
}

// stacked breaks a heading over lines, so that the column can be narrow.
func stacked(c Column, short bool) string {
	words := strings.Fields(c.Name)
	if short && len(words) == 2 {
		words[0] = strings.NewReplacer("sender", "snd", "receiver", "rcv").Replace(words[0])
	}
	if c.Unit != "" {
		if len(words) == 2 && words[1] == "CPU" {
			if c.Unit == "%" {
				return words[0] + "\nCPU %"
			}
			return words[0] + "\n" + c.Unit
		}
		return c.Name + "\n" + c.Unit
	}
	if len(words) == 3 {
		return words[0] + " " + words[1] + "\n" + words[2]
	}
	return c.Name
}

func (f fitted) rows() [][]string {
	rows := make([][]string, len(f.Names))
	for i, name := range f.Names {
		rows[i] = []string{phrase.Printable(name)}
		for _, c := range f.Columns {
			rows[i] = append(rows[i], phrase.Printable(c.Cells[i].terminal(f.ranges[c.Key])))
		}
		if why := f.Rows[i].Absent(); why != "" && len(rows[i]) > 1 {
			rows[i][1] = why
		}
	}
	return rows
}

// Absent returns why a row has no figures, in a few words; empty if it has
// some.
func (s *Scenario) Absent() string {
	switch {
	case s.Skipped != "":
		return "skipped"
	case s.Trials == 0:
		return "no figures"
	}
	return ""
}

// terminal prints the cell on one line.
func (c Cell) terminal(ranged bool) string {
	text := c.Text
	if ranged && c.Range != "" {
		text += " " + c.Range
	}
	if c.Alike {
		text += " ~"
	}
	if c.Suggested {
		text += " ?"
	}
	return text
}

// words tells which columns hold no figures; the scenario's name is one.
func (f fitted) words() map[int]bool {
	words := map[int]bool{0: true}
	for i, c := range f.Columns {
		words[i+1] = c.Text
	}
	return words
}

func (f fitted) width() int { return widthOf(f.heads(), f.rows()) }

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
func sources(list []Beside) []string {
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
