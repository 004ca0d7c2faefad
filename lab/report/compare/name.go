package compare

import (
	"fmt"
	"path"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Metric returns the metric with a name. The error suggests similar names.
func Metric(name string) (sample.Metric, error) {
	if _, ok := sample.Describe(sample.Metric(name)); ok {
		return sample.Metric(name), nil
	}
	return "", fmt.Errorf("there is no metric %q; %s", phrase.Clip(name), meant(name, "metrics", sample.Names()))
}

// matches reports whether a pattern selects a scenario (see suite.Matches). A
// pattern with invalid syntax selects none.
func matches(pattern, id string) bool {
	ok, err := suite.Matches(pattern, id)
	return ok && err == nil
}

// readable reports whether path.Match accepts the pattern.
func readable(pattern string) bool {
	_, err := path.Match(pattern, "")
	return pattern != "" && err == nil
}

// selection returns the ids that match a pattern; without patterns all ids. A pattern
// that matches no id is an error.
func selection(patterns, ids []string) ([]string, error) {
	if len(patterns) == 0 {
		return ids, nil
	}
	wanted := make(map[string]bool)
	for _, p := range patterns {
		if !readable(p) {
			return nil, fmt.Errorf("the scenario pattern %q cannot be read; write an id, a group, or a pattern with *, ? and [a-z]", phrase.Clip(p))
		}
		found := false
		for _, id := range ids {
			if matches(p, id) {
				found, wanted[id] = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no scenario %q; %s", phrase.Clip(p), meant(p, "scenarios", suite.NamesFor(ids)))
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
	if near := suite.Nearest(given, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return kind + ": " + strings.Join(known, ", ")
}
