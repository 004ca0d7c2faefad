package model

import (
	"cmp"
	"slices"
)

// Leaks returns, for each network, the names of the networks whose routes it imports, in the order of
// their ids: those that export a route target in its Import. Networks that only bridge neither import
// nor export routes.
func Leaks(all []Network) map[string][]string {
	exporters := map[RouteTarget][]*Network{}
	for i := range all {
		if n := &all[i]; n.Routes() {
			for _, t := range n.Export {
				exporters[t] = append(exporters[t], n)
			}
		}
	}
	leaks := map[string][]string{}
	for i := range all {
		var from []*Network
		for _, t := range all[i].Import {
			from = append(from, exporters[t]...)
		}
		if len(from) == 0 || !all[i].Routes() {
			continue
		}
		slices.SortFunc(from, func(a, b *Network) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Name, b.Name)) })
		for _, n := range slices.Compact(from) {
			if n != &all[i] {
				leaks[all[i].Name] = append(leaks[all[i].Name], n.Name)
			}
		}
	}
	return leaks
}

// WithLeaks returns the given networks, and those whose routes they import.
func WithLeaks[V any](names map[string]V, leaks map[string][]string) map[string]bool {
	all := make(map[string]bool, len(names))
	for name := range names {
		all[name] = true
		for _, from := range leaks[name] {
			all[from] = true
		}
	}
	return all
}
