package main

import (
	"maps"
	"slices"
	"strings"
)

// settings collects one kind of setting over a run's scenarios: name → value →
// the scenarios that have it.
type settings map[string]map[string][]string

func (s settings) add(scenario string, set map[string]string) {
	for name, value := range set {
		if s[name] == nil {
			s[name] = map[string][]string{}
		}
		s[name][value] = append(s[name][value], scenario)
	}
}

// merge returns the settings that the run recorded before, with the collected settings.
// A setting whose value has changed since has both values. before is empty unless the
// run was resumed.
func (s settings) merge(before map[string]string) map[string]string {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]string{}
	}
	for name, values := range s {
		text := renderValues(values)
		if was, known := before[name]; known && was != text {
			text = was + "; after the run was resumed: " + text
		}
		all[name] = text
	}
	return all
}

// renderValues prints the most frequent value, then every other value with its
// scenarios: "50000; 0 in bridge/rr, raw/rr".
func renderValues(values map[string][]string) string {
	order := slices.Sorted(maps.Keys(values))
	slices.SortStableFunc(order, func(a, b string) int { return len(values[b]) - len(values[a]) })
	text := order[0]
	for _, value := range order[1:] {
		text += "; " + value + " in " + strings.Join(slices.Sorted(slices.Values(values[value])), ", ")
	}
	return text
}
