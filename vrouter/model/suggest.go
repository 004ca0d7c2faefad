package model

import (
	"fmt"
	"strings"
)

// choices lists what there is of a kind, for a person who named something else.
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

// nearest returns the known word with the fewest edits from given, or "" when
// none is near enough to have been meant.
func nearest(given string, known []string) string {
	if len(given) > 100 {
		return ""
	}
	given = strings.ToLower(given)
	best, fewest := "", max(1, len([]rune(given))/3)+1
	for _, k := range known {
		if d := distance(given, k); d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// distance is Levenshtein's: insertions, deletions, substitutions.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := range s {
		diagonal := row[0]
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(t)]
}

// clip keeps a message readable when a value is huge.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
