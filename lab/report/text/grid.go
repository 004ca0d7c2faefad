package text

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"windtunnel/internal/phrase"
	"windtunnel/internal/screen"
	"windtunnel/lab/report/model"
)

// grid writes a table. Words are aligned left, figures right. If the terminal is too
// narrow, it writes a line for each row.
func (t *terminal) grid(g model.Grid) {
	g = fitted(g)
	widths, whole := widthsOf(g)
	if whole > t.width {
		t.lines(g)
		return
	}
	upper, lower := make([]string, len(g.Heads)), make([]string, len(g.Heads))
	for i, head := range g.Heads {
		var below bool
		if upper[i], lower[i], below = strings.Cut(head, "\n"); !below {
			upper[i], lower[i] = "", head
		}
	}
	row := func(cells []string, style lipgloss.Style) {
		line := screen.Row(cells, widths, func(i int) bool { return !g.Words[i] })
		t.out.WriteString(style.Render(line) + "\n")
	}
	if strings.Join(upper, "") != "" {
		row(upper, t.style.title)
	}
	row(lower, t.style.title)
	t.out.WriteString(t.style.faint.Render(strings.Repeat("─", whole)) + "\n")
	for _, cells := range g.Rows {
		if len(cells) == 1 {
			t.paragraph(t.style.title, "", cells[0])
		} else {
			row(cells, t.style.plain)
		}
	}
}

// lines writes the table without columns: a line for each row.
func (t *terminal) lines(g model.Grid) {
	for _, row := range g.Rows {
		if len(row) == 1 {
			t.paragraph(t.style.title, "", row[0])
			continue
		}
		var names, cells []string
		for i, text := range row {
			switch text = strings.TrimSpace(text); {
			case text == "":
			case g.Words[i]:
				names = append(names, text)
			default:
				cells = append(cells, strings.TrimSpace(strings.ReplaceAll(g.Heads[i], "\n", " ")+" "+text))
			}
		}
		line := strings.Join(names, ", ")
		if len(cells) > 0 {
			line = "• " + line + ": " + strings.Join(cells, ", ")
		}
		t.paragraph(t.style.plain, "  ", line)
	}
}

// fitted makes the texts printable, breaks headings into two lines, and indents the
// rows of a grid with headings.
func fitted(g model.Grid) model.Grid {
	titled := slices.ContainsFunc(g.Rows, func(row []string) bool { return len(row) == 1 })
	heads, rows := slices.Clone(g.Heads), make([][]string, len(g.Rows))
	for i, head := range heads {
		if !g.Words[i] && !strings.Contains(head, "\n") {
			heads[i] = stacked(head, "")
		}
	}
	for i := range g.Rows {
		for _, text := range g.Rows[i] {
			rows[i] = append(rows[i], phrase.Printable(text))
		}
		if titled && len(rows[i]) > 1 {
			rows[i][0] = "  " + rows[i][0]
		}
	}
	return model.Grid{Heads: heads, Words: g.Words, Rows: rows}
}

// widthsOf returns the widths of the columns of a fitted grid, and of the grid.
func widthsOf(g model.Grid) (widths []int, whole int) {
	rows := slices.DeleteFunc(slices.Clone(g.Rows), func(row []string) bool { return len(row) == 1 })
	widths = screen.Widths(append(rows, g.Heads)...)
	return widths, screen.Total(widths)
}

// fits reports whether the terminal is wide enough for a grid.
func (t *terminal) fits(g model.Grid) bool {
	_, whole := widthsOf(fitted(g))
	return whole <= t.width
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

// withoutEmpty returns the grid without its empty columns.
func withoutEmpty(g model.Grid) model.Grid {
	out := model.Grid{Words: make(map[int]bool), Rows: make([][]string, len(g.Rows))}
	for col, head := range g.Heads {
		if !slices.ContainsFunc(g.Rows, func(row []string) bool { return len(row) > 1 && row[col] != "" }) {
			continue
		}
		out.Words[len(out.Heads)] = g.Words[col]
		out.Heads = append(out.Heads, head)
		for i, row := range g.Rows {
			if len(row) > 1 {
				out.Rows[i] = append(out.Rows[i], row[col])
			} else {
				out.Rows[i] = row
			}
		}
	}
	return out
}

// halves writes a table whose first column names the rows. It splits a table that is too
// wide for the terminal by its other columns.
func (t *terminal) halves(g model.Grid) {
	if t.fits(g) || len(g.Heads) < 4 {
		t.grid(g)
		return
	}
	middle := 1 + len(g.Heads)/2
	t.halves(columns(g, 1, middle))
	t.out.WriteByte('\n')
	t.halves(columns(g, middle, len(g.Heads)))
}

// columns returns the first column of a grid of figures, and the columns from a first to
// before an end.
func columns(g model.Grid, first, end int) model.Grid {
	part := model.Grid{Heads: append([]string{g.Heads[0]}, g.Heads[first:end]...), Words: g.Words}
	for _, row := range g.Rows {
		part.Add(append([]string{row[0]}, row[first:end]...)...)
	}
	return part
}
