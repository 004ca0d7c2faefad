package model

import (
	"fmt"
	"strings"
)

// choices lists up to ten known names of a kind.
func choices(kind string, known []string) string {
	const most = 10
	switch {
	case len(known) == 0:
		return "there are no " + kind
	case len(known) > most:
		return fmt.Sprintf("%s: %s and %d more", kind, strings.Join(known[:most], ", "), len(known)-most)
	}
	return kind + ": " + strings.Join(known, ", ")
}

// Meant suggests the known name that is most similar to the given name. If no
// name is similar, it lists the known names.
func Meant(kind, given string, known []string) string {
	if meant := nearest(given, known); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	return choices(kind, known)
}

// nearest returns the known word with the fewest edits from given, or "" if all
// differ too much.
func nearest(given string, known []string) string {
	if len(given) > 100 {
		return ""
	}
	given = strings.ToLower(given)
	best, fewest := "", max(1, len([]rune(given))/3)+1
	for _, k := range known {
		if d := distance(given, strings.ToLower(k)); d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// distance is the Damerau-Levenshtein distance: insertions, deletions,
// substitutions, and swaps of neighbours.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, above, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range above {
		above[j] = j
	}
	for i := range s {
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(above[j+1]+1, row[j]+1, above[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(t)]
}

// clip shortens a long value in a message.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
