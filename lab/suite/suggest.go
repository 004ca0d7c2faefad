package suite

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/phrase"
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
func enumerate(names []string) string { return phrase.Some(names, 30) }

// Nearest returns the known name that is a synonym of given, else the one with
// the fewest edits from it, else the first that given is a part of; "" where none
// is near.
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
		if d := phrase.Distance(given, strings.ToLower(k)); d < fewest {
			best, fewest = k, d
		}
	}
	for _, k := range known {
		if best == "" && len(given) > 2 && strings.Contains(strings.ToLower(k), given) {
			best = k
		}
	}
	return best
}
