package inspect

import (
	"slices"

	"github.com/charmbracelet/x/ansi"

	"windtunnel/internal/screen"
)

// fitted has the visible columns of a table and their widths.
type fitted struct {
	columns []int    // indices, in order
	widths  []int    // by index into columns
	hidden  []string // names of hidden columns
}

// fit chooses columns and widths for a terminal. It adds columns in the order
// of Leave while they fit at their smallest widths. Then it shortens the widest
// columns. Columns with Leave 0 are always visible, even if the line becomes
// too long, since they have the row's keys.
func fit(t Table, width int) fitted {
	natural := t.naturalWidths()
	f := fitted{columns: t.visible(natural, width)}
	for i, c := range t.Columns {
		if !slices.Contains(f.columns, i) {
			f.hidden = append(f.hidden, c.Name)
		}
	}
	for _, i := range f.columns {
		f.widths = append(f.widths, natural[i])
	}
	if width > 0 {
		screen.Shrink(f.widths, width, func(at int) int { return t.least(f.columns[at], natural) })
	}
	return f
}

// visible returns the visible columns, in order; all if width is 0.
func (t Table) visible(natural []int, width int) []int {
	candidates := make([]int, len(t.Columns))
	for i := range candidates {
		candidates[i] = i
	}
	slices.SortStableFunc(candidates, func(a, b int) int { return t.Columns[a].Leave - t.Columns[b].Leave })
	var in []int
	sum := -screen.Gap
	for _, i := range candidates {
		more := screen.Gap + t.least(i, natural)
		if t.Columns[i].Leave == 0 || width == 0 || sum+more <= width {
			in, sum = append(in, i), sum+more
		}
	}
	slices.Sort(in)
	return in
}

// naturalWidths are the widths of unshortened columns.
func (t Table) naturalWidths() []int {
	return screen.Widths(append([][]string{t.names()}, t.Rows...)...)
}

// least is the smallest width of column i.
func (t Table) least(i int, natural []int) int {
	c := t.Columns[i]
	if c.Least == 0 {
		return natural[i]
	}
	return min(natural[i], max(c.Least, ansi.StringWidth(c.Name)))
}
