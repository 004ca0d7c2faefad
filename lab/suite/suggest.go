package suite

import (
	"fmt"
	"strings"

	"windtunnel/lab/phrase"
)

// remedyFor tells what could have been meant by given: the nearest of the
// known names, and the list of them.
func remedyFor(given, kind string, known []string) string {
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

// Nearest returns the known name with the fewest edits from given, or "" when
// none is near enough to have been meant; of those that are not, the first that
// given is a part of.
func Nearest(given string, known []string) string {
	if len(given) > 100 {
		return ""
	}
	given = strings.ToLower(given)
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
