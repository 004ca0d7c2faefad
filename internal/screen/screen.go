// Package screen lays out text for a terminal: paragraphs and columns. Widths are in terminal
// cells: a wide character has two.
package screen

import (
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"

	"windtunnel/internal/phrase"
)

// Terminal says what a terminal can show.
type Terminal struct {
	Width  int  // 0: unlimited
	Colour bool // whether escape sequences may be written
}

// Of returns the properties of the terminal that w writes to. NO_COLOR turns colours off
// (no-color.org). A file or a pipe has an unlimited width and no colours.
func Of(w io.Writer) Terminal {
	file, ok := w.(descriptor)
	if !ok || !IsTerminal(file) {
		return Terminal{}
	}
	width := 0
	if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil {
		width = int(size.Col)
	}
	return Terminal{Width: width, Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

type descriptor interface{ Fd() uintptr }

// IsTerminal reports whether a file is a terminal.
func IsTerminal(file descriptor) bool {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// Wrap breaks text between words into lines of at most width cells; 0 is unlimited. All lines but
// the first begin with indent; the caller prints as many cells before the first one. A longer word
// gets a line of its own. Text is made printable.
func Wrap(text string, width int, indent string) string {
	if width > 0 {
		width = max(width-ansi.StringWidth(indent), 1)
	}
	return strings.Join(Lines(text, width), "\n"+indent)
}

// Lines breaks text like Wrap, without an indent. A number and its percent sign stay together.
func Lines(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range words(phrase.Printable(text)) {
		if line != "" && width > 0 && ansi.StringWidth(line)+1+ansi.StringWidth(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// words splits text at spaces, but not before a percent sign.
func words(text string) (list []string) {
	for _, word := range strings.Fields(text) {
		if n := len(list); n > 0 && strings.HasPrefix(word, "%") {
			list[n-1] += " " + word
		} else {
			list = append(list, word)
		}
	}
	return list
}

// Gap is the space between columns.
const Gap = 2

// Widths returns the widths of columns from the cells of their rows. A row may have fewer cells,
// and a cell several lines.
func Widths(rows ...[]string) (widths []int) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			for line := range strings.SplitSeq(cell, "\n") {
				widths[i] = max(widths[i], ansi.StringWidth(line))
			}
		}
	}
	return widths
}

// Total returns the width of a line of columns.
func Total(widths []int) int {
	sum := Gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// Shrink makes the widest columns narrower until a line has at most total cells, or all columns
// have their least width.
func Shrink(widths []int, total int, least func(column int) int) {
	for more := Total(widths) - total; more > 0; more-- {
		widest := -1
		for i, w := range widths {
			if w > least(i) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// Row formats the cells of a line in columns, without blanks at its end. It shortens cells that are
// wider than their column. right chooses the columns that are aligned right.
func Row(cells []string, widths []int, right func(column int) bool) string {
	var line strings.Builder
	for i, cell := range cells {
		cell = ansi.Truncate(cell, widths[i], "…")
		blanks := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
		if i > 0 {
			line.WriteString(strings.Repeat(" ", Gap))
		}
		if right(i) {
			line.WriteString(blanks + cell)
		} else {
			line.WriteString(cell + blanks)
		}
	}
	return strings.TrimRight(line.String(), " ")
}
