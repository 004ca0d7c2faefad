package compare

import (
	"strings"
	"unicode/utf8"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/text"
)

// textWidth is the longest line of a text table, in columns.
const textWidth = 100

// leastColumn is the smallest width of a text column.
const leastColumn = 16

// gap is the space between columns.
const gap = 2

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
			text := space
			for i, c := range cells {
				if at < len(c) {
					text += c[at]
				}
				text += strings.Repeat(" ", max(0, column(indent, widths, i+1)-utf8.RuneCountInString(text)))
			}
			b.WriteString(strings.TrimRight(text, " ") + "\n")
		}
		if l.note != "" {
			writeWrapped(b, space+"  ", l.note)
		}
	}
}

// column returns the position at which a column begins.
func column(indent int, widths []int, i int) int {
	at := indent
	for _, w := range widths[:i] {
		at += w + gap
	}
	return at
}

// fitted returns widths of the columns that fit into a total width.
func fitted(lines []textLine, width int) []int {
	var widths []int
	for _, l := range lines {
		for i, c := range l.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(phrase.Printable(c)))
		}
	}
	for column(0, widths, len(widths))-gap > width {
		widest := 0
		for i, w := range widths {
			if w >= widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastColumn {
			break
		}
		widths[widest]--
	}
	return widths
}

// broken wraps a line into lines of at most width characters. It breaks a word
// only if the word alone is longer.
func broken(line string, width int) []string {
	var lines []string
	for part := range strings.SplitSeq(text.Wrap(line, width, ""), "\n") {
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
	b.WriteString(indent + text.Wrap(line, textWidth, "  "+indent) + "\n")
}
