package compare

import (
	"fmt"
	"path"
	"strings"

	"windtunnel/lab/sample"
)

// Metric returns the metric with a name. The error suggests similar names.
func Metric(name string) (sample.Metric, error) {
	if _, ok := sample.Describe(sample.Metric(name)); ok {
		return sample.Metric(name), nil
	}
	return "", fmt.Errorf("there is no metric %q; %s", clip(name), meant(name, "metrics", metricNames()))
}

func metricNames() []string {
	var names []string
	for _, info := range sample.Known() {
		names = append(names, string(info.Metric))
	}
	return names
}

func label(m sample.Metric) string {
	if info, ok := sample.Describe(m); ok {
		return info.Label
	}
	return string(m)
}

// matches reports whether a pattern selects a scenario: by its id, by its group
// (the part before "/"), or by a pattern of path.Match for either.
func matches(pattern, id string) bool {
	group, _, _ := strings.Cut(id, "/")
	if pattern == id || pattern == group {
		return true
	}
	if whole, err := path.Match(pattern, id); err != nil || whole {
		return err == nil
	}
	if strings.Contains(pattern, "/") {
		return false
	}
	ok, err := path.Match(pattern, group)
	return ok && err == nil
}

// readable reports whether path.Match accepts the pattern.
func readable(pattern string) bool {
	_, err := path.Match(pattern, "")
	return pattern != "" && err == nil
}

// words lists the exact names that a pattern may have: ids and their groups.
func words(ids []string) []string {
	var all []string
	seen := make(map[string]bool)
	for _, id := range ids {
		group, _, _ := strings.Cut(id, "/")
		for _, word := range []string{group, id} {
			if !seen[word] {
				seen[word] = true
				all = append(all, word)
			}
		}
	}
	return all
}

// selection returns the ids that any of the patterns matches, or all ids
// without a pattern. The first pattern that matches nothing is an error.
func selection(patterns, ids []string) ([]string, error) {
	if len(patterns) == 0 {
		return ids, nil
	}
	wanted := make(map[string]bool)
	for _, p := range patterns {
		if !readable(p) {
			return nil, fmt.Errorf("the scenario pattern %q cannot be read; write an id, a group, or a pattern with *, ? and [a-z]", clip(p))
		}
		found := false
		for _, id := range ids {
			if matches(p, id) {
				found, wanted[id] = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("no scenario is called %q; %s", clip(p), meant(p, "scenarios", words(ids)))
		}
	}
	var chosen []string
	for _, id := range ids {
		if wanted[id] {
			chosen = append(chosen, id)
		}
	}
	return chosen, nil
}

// meant is the remedy for an unknown name: the most similar known name, or all.
func meant(given, kind string, known []string) string {
	if near := nearest(strings.ToLower(given), known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return kind + ": " + strings.Join(known, ", ")
}

// nearest returns the known name with the fewest edits from given, else the
// first one that contains given, else none.
func nearest(given string, known []string) string {
	if len(given) < 2 || len(given) > 100 {
		return ""
	}
	best, fewest := "", max(1, len([]rune(given))/3)+1
	for _, k := range known {
		if d := edits(given, strings.ToLower(k)); d < fewest {
			best, fewest = k, d
		}
	}
	for _, k := range known {
		if best == "" && strings.Contains(strings.ToLower(k), given) {
			best = k
		}
	}
	return best
}

// edits is the Levenshtein distance in characters.
func edits(a, b string) int {
	s, t := []rune(a), []rune(b)
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := range s {
		diagonal := row[0]
		row[0] = i + 1
		for j := range t {
			change := diagonal
			if s[i] != t[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(t)]
}

// clip shortens a huge value, so that a message stays readable.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
