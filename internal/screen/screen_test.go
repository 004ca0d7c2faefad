package screen

import (
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/ptytest"
)

func TestWrapKeepsToTheWidthAndIndents(t *testing.T) {
	for _, c := range []struct {
		text   string
		width  int
		indent string
		want   string
	}{
		{"• one two three\x1b[2J four", 11, "  ", "• one two\n  three\uFFFD[2J\n  four"},
		{"used 40.9 % (npm 3 %)", 10, "", "used\n40.9 %\n(npm 3 %)"},
		{"longer-than-the-width", 5, "", "longer-than-the-width"},
		{"网络 红色 b", 9, "", "网络 红色\nb"},
		{"of any\nlength", 0, "  ", "of any length"},
	} {
		must.Equal(t, c.want, Wrap(c.text, c.width, c.indent))
	}
}

func TestColumnsShrinkToTheirMinimumWidths(t *testing.T) {
	for total, want := range map[int][]int{100: {4, 10, 8}, 22: {4, 7, 7}, 1: {4, 5, 5}} {
		widths := Widths([]string{"网络", "abc"}, []string{"a", "0123456789", "01234567"})
		Shrink(widths, total, func(i int) int { return []int{4, 5, 5}[i] })
		if !slices.Equal(widths, want) {
			t.Errorf("at %d cells: %v, want %v", total, widths, want)
		}
	}
}

func TestARowIsAlignedAndShortened(t *testing.T) {
	got := Row([]string{"网络", "7", "longer", ""}, []int{5, 3, 4, 9}, func(i int) bool { return i == 1 })
	must.Equal(t, "网络     7  lon…", got)
}

func TestATerminalHasItsWidthAndColours(t *testing.T) {
	_, tty := ptytest.Open(t, 72)
	for _, c := range []struct {
		noColor, term string
		want          Terminal
	}{
		{"", "xterm", Terminal{72, true}}, {"1", "xterm", Terminal{72, false}}, {"", "dumb", Terminal{72, false}},
	} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.term)
		if got := Of(tty); got != c.want {
			t.Errorf("NO_COLOR=%q TERM=%q: %+v, want %+v", c.noColor, c.term, got, c.want)
		}
	}
	tty.Close()
	must.Equal(t, (Terminal{}), Of(tty))
}
