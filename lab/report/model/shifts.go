package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"windtunnel/lab/phrase"
	"windtunnel/lab/profile/folded"
)

// mostCategories is how many categories a sentence names.
const mostCategories = 3

// leastShare of a side's CPU time is what a category has to change by to be
// named: profiles are samples.
const leastShare = 0.01

// shifts says for each side where the CPU time of id went that from did not
// spend: "At the receiver most of it is spent in GRO (+0.21 ns/byte), …".
func (r *Report) shifts(id, from, name string) []string {
	var lines []string
	for _, side := range []string{"sender", "receiver"} {
		over, unit, ok := r.perUnit(id, side)
		under, _, both := r.perUnit(from, side)
		if !ok || !both {
			continue
		}
		if text := shift(over, under, unit); text != "" {
			lines = append(lines, fmt.Sprintf("By the profiles, what %s changes at the %s lies in %s.", name, side, text))
		}
	}
	return lines
}

// shift names the categories that differ most.
func shift(over, under map[string]float64, unit string) string {
	type change struct {
		category string
		by       float64
	}
	var all []change
	total := 0.0
	for _, v := range over {
		total += v
	}
	for _, side := range []map[string]float64{over, under} {
		for category := range side {
			by := over[category] - under[category]
			if math.Abs(by) >= leastShare*total && !slices.ContainsFunc(all, func(c change) bool { return c.category == category }) {
				all = append(all, change{category, by})
			}
		}
	}
	slices.SortFunc(all, func(a, b change) int {
		return cmp.Or(cmp.Compare(math.Abs(b.by), math.Abs(a.by)), cmp.Compare(a.category, b.category))
	})
	var parts []string
	for _, c := range all[:min(len(all), mostCategories)] {
		parts = append(parts, fmt.Sprintf("%s (%s %s)", c.category, Signed(c.by, significant(c.by)), unit))
	}
	return phrase.And(parts)
}

// perUnit is the CPU time of a side by category, for each byte or, of
// request/response, for each transaction; ns.
func (r *Report) perUnit(id, side string) (by map[string]float64, unit string, ok bool) {
	i := slices.IndexFunc(r.Profiles, func(p Profile) bool { return p.Scenario == id && p.Side == side })
	j := slices.IndexFunc(r.Scenarios, func(s Scenario) bool { return s.ID == id })
	if i < 0 || j < 0 {
		return nil, "", false
	}
	p := &r.Profiles[i]
	data, err := folded.Decode(p.Data)
	if err != nil {
		return nil, "", false
	}
	rate, unit := p.Bytes, "ns/byte"
	if t := r.Scenarios[j].Transactions; t != nil {
		rate, unit = t.Median, "ns/transaction"
		if p.Slowdown != nil {
			rate *= p.Slowdown.Median
		}
	}
	if rate <= 0 {
		return nil, "", false
	}
	by = make(map[string]float64)
	for _, row := range folded.Categories(data) {
		if row.Name != folded.Idle && row.Name != folded.Wire {
			by[row.Name] = row.Cores * 1e9 / rate
		}
	}
	return by, unit, true
}
