package inspect

import (
	"slices"

	"github.com/charmbracelet/x/ansi"
)

// layout has the visible columns of a table and their widths.
type layout struct {
	columns []int    // indices, in order
	widths  []int    // by index into columns
	hidden  []string // names of hidden columns
}

const gap = 2 // spaces between columns

// fit chooses columns and widths for a terminal. It adds columns in the order
// of Leave while they fit at their smallest widths. Then it shortens the widest
// columns. Columns with Leave 0 are always visible, even if the line becomes
// too long, since they have the row's keys.
func fit(t Table, width int) layout {
	natural := t.naturalWidths()
	l := layout{columns: t.visible(natural, width)}
	for i, c := range t.Columns {
		if !slices.Contains(l.columns, i) {
			l.hidden = append(l.hidden, c.Name)
		}
	}
	for _, i := range l.columns {
		l.widths = append(l.widths, natural[i])
	}
	if width > 0 {
		l.shrink(t, natural, width)
	}
	return l
}

// visible returns the visible columns, in order; all if width is 0.
func (t Table) visible(natural []int, width int) []int {
	candidates := make([]int, len(t.Columns))
	for i := range candidates {
		candidates[i] = i
	}
	slices.SortStableFunc(candidates, func(a, b int) int { return t.Columns[a].Leave - t.Columns[b].Leave })
	var in []int
	sum := -gap
	for _, i := range candidates {
		more := gap + t.least(i, natural)
		if t.Columns[i].Leave == 0 || width == 0 || sum+more <= width {
			in, sum = append(in, i), sum+more
		}
	}
	slices.Sort(in)
	return in
}

// naturalWidths are the widths of unshortened columns.
func (t Table) naturalWidths() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = ansi.StringWidth(c.Name)
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	return widths
}

// least is the smallest width of column i.
func (t Table) least(i int, natural []int) int {
	c := t.Columns[i]
	if c.Least == 0 {
		return natural[i]
	}
	return min(natural[i], max(c.Least, ansi.StringWidth(c.Name)))
}

// shrink takes one cell at a time from the widest column that can be shortened.
func (l *layout) shrink(t Table, natural []int, width int) {
	sum := gap * (len(l.columns) - 1)
	for _, w := range l.widths {
		sum += w
	}
	for ; sum > width; sum-- {
		widest := -1
		for at, i := range l.columns {
			if l.widths[at] > t.least(i, natural) && (widest < 0 || l.widths[at] > l.widths[widest]) {
				widest = at
			}
		}
		if widest < 0 {
			return
		}
		l.widths[widest]--
	}
}
