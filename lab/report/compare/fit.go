package compare

import (
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/internal/screen"
)

// textWidth is the longest line of a text table, in columns.
const textWidth = 100

// leastColumn is the smallest width of a text column.
const leastColumn = 16

// textLine is a line of a text table: cells, or a heading for the lines below
// it.
type textLine struct {
	heading string
	cells   []string
	note    string // on lines of its own, below the cells
}

// writeLines writes lines in columns, after an indent. If the columns do not
// fit, it wraps the cells of the widest one.
func writeLines(b *strings.Builder, indent int, lines []textLine) {
	widths := fitted(lines, textWidth-indent)
	space := strings.Repeat(" ", indent)
	for _, l := range lines {
		if l.heading != "" {
			writeWrapped(b, "  ", l.heading)
			continue
		}
		cells := make([][]string, len(l.cells))
		tall := 0
		for i, c := range l.cells {
			cells[i] = broken(c, widths[i])
			tall = max(tall, len(cells[i]))
		}
		for at := range tall {
			row := make([]string, len(cells))
			for i, c := range cells {
				if at < len(c) {
					row[i] = c[at]
				}
			}
			b.WriteString(strings.TrimRight(space+screen.Row(row, widths, func(int) bool { return false }), " ") + "\n")
		}
		if l.note != "" {
			writeWrapped(b, space+"  ", l.note)
		}
	}
}

// fitted returns widths of the columns that fit into a total width.
func fitted(lines []textLine, width int) []int {
	var rows [][]string
	for _, l := range lines {
		row := make([]string, len(l.cells))
		for i, c := range l.cells {
			row[i] = phrase.Printable(c)
		}
		rows = append(rows, row)
	}
	widths := screen.Widths(rows...)
	screen.Shrink(widths, width, func(int) int { return leastColumn })
	return widths
}

// broken wraps a line into lines of at most width characters. It breaks a word
// only if the word alone is longer.
func broken(line string, width int) []string {
	var lines []string
	for part := range strings.SplitSeq(screen.Wrap(line, width, ""), "\n") {
		r := []rune(part)
		for len(r) > width && width > 0 {
			lines, r = append(lines, string(r[:width])), r[width:]
		}
		lines = append(lines, string(r))
	}
	return lines
}

// writeWrapped writes wrapped text after an indent. Later lines are indented by two
// columns more.
func writeWrapped(b *strings.Builder, indent, line string) {
	b.WriteString(indent + screen.Wrap(line, textWidth, "  "+indent) + "\n")
}
