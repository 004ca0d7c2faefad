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

// over adds the collected settings to the record of an interrupted run. If a value
// has changed since, the record has both values.
func (s settings) over(before map[string]string) map[string]string {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]string{}
	}
	for name, values := range s {
		text := listed(values)
		if was, known := before[name]; known && was != text {
			text = was + "; after the run was resumed: " + text
		}
		all[name] = text
	}
	return all
}

// listed prints the value of most scenarios, then every other value with its
// scenarios: "50000; 0 in bridge/rr, raw/rr".
func listed(values map[string][]string) string {
	order := slices.Sorted(maps.Keys(values))
	slices.SortStableFunc(order, func(a, b string) int { return len(values[b]) - len(values[a]) })
	text := order[0]
	for _, value := range order[1:] {
		text += "; " + value + " in " + strings.Join(slices.Sorted(slices.Values(values[value])), ", ")
	}
	return text
}
