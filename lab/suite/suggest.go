package suite

import (
	"fmt"
	"slices"
	"strings"
)

// synonyms are words of other tools, and the words of this language for them.
var synonyms = map[string]string{
	"parallel":    "streams", // iperf3
	"connections": "streams",
	"flows":       "streams",
	"length":      "buffer",
	"bandwidth":   "rate",
	"bitrate":     "rate",
	"tcp":         "tcp_stream",
	"udp":         "udp_stream",
	"rr":          "tcp_rr",
	"crr":         "tcp_crr",
}

// Suggest says which of the known names was meant by given, and lists them.
// kind is the plural of what is named: "systems".
func Suggest(given, kind string, known []string) string {
	list := kind + ": " + enumerate(known)
	if len(known) == 0 {
		list = "there are no " + kind
	}
	if near := Nearest(given, known); near != "" {
		return fmt.Sprintf("did you mean %q? %s", near, list)
	}
	return list
}

// enumerate lists at most thirty names.
func enumerate(names []string) string {
	const most = 30
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Nearest returns the known name that is a synonym of given, or else the one
// with the fewest edits from it; "" where none is near.
func Nearest(given string, known []string) string {
	if len(given) > 100 {
		return ""
	}
	given = strings.ToLower(given)
	if word := synonyms[given]; slices.Contains(known, word) {
		return word
	}
	best, fewest := "", max(1, len([]rune(given))/3)+1
	for _, k := range known {
		if d := distance(given, strings.ToLower(k)); d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// distance is the optimal string alignment distance: insertions, deletions,
// substitutions and transpositions of neighbours.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(s)][len(t)]
}
