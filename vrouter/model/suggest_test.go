package model

import (
	"strings"
	"testing"
)

func TestDistanceCountsEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"red", "red", 0}, {"", "red", 3}, {"red", "", 3}, {"red", "reed", 1}, {"red", "rd", 1}, {"red", "rod", 1},
		{"rde", "red", 1}, {"subnet", "subnets", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "badc", 2}, {"größe", "grösse", 2}, {"flaw", "lawn", 2},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d edits, want %d", c.a, c.b, got, c.want)
		}
		if got := distance(c.b, c.a); got != c.want {
			t.Errorf("from %q to %q: %d edits, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestTheNearestNameIsTheOneThatWasMeant(t *testing.T) {
	known := []string{"Blue", "green", "red", "reed"}
	for given, want := range map[string]string{
		"rde": "red", "RED": "red", "gren": "green", "bleu": "Blue", "rred": "red", "yellow": "", "": "", strings.Repeat("red", 40): "",
	} {
		if got := nearest(given, known); got != want {
			t.Errorf("%.20q: %q, want %q", given, got, want)
		}
	}
}

func TestChoicesListTenAtMost(t *testing.T) {
	for _, c := range []struct {
		known []string
		want  string
	}{
		{nil, "there are no networks"},
		{[]string{"red", "blue"}, "networks: red, blue"},
		{strings.Split("abcdefghijklm", ""), "networks: a, b, c, d, e, f, g, h, i, j and 3 more"},
	} {
		if got := choices("networks", c.known); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
