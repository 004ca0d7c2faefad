package suite

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
)

// synonyms maps words of other tools to the words of this language.
var synonyms = map[string]string{
	"parallel":    "streams", // iperf3
	"connections": "streams",
	"flows":       "streams",
	"name":        "suite",
	"repetitions": "trials",
	"iterations":  "trials",
	"length":      "buffer",
	"bandwidth":   "rate",
	"bitrate":     "rate",
	"tcp":         "tcp_stream",
	"udp":         "udp_stream",
	"rr":          "tcp_rr",
	"crr":         "tcp_crr",
}

// Suggest returns the remedy for an unknown name: the most similar known name,
// and a list of the known ones. kind is the plural of the named things:
// "systems".
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

// Nearest returns the known name that given probably means: a synonym, else the
// name with the fewest edits, else the first name that contains given. It is ""
// if no name is similar.
func Nearest(given string, known []string) string {
	if len(given) > 100 {
		return ""
	}
	given = strings.ToLower(given)
	if word := synonyms[given]; slices.Contains(known, word) {
		return word
	}
	best := phrase.Nearest(given, known)
	for _, k := range known {
		if best == "" && len(given) > 2 && strings.Contains(strings.ToLower(k), given) {
			best = k
		}
	}
	return best
}
