package profiles

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
)

// mostCategories is how many categories a sentence names.
const mostCategories = 3

// leastShare is the smallest change of a category that a sentence names, as a share of
// the side's CPU time. Smaller changes can be sampling noise.
const leastShare = 0.01

// Shifts returns a sentence for each side: the categories in which id uses more or less
// CPU time than from. name is the name of id in the sentence.
func Shifts(r *model.Report, id, from, name string) (lines phrase.Lines) {
	for _, side := range []string{"sender", "receiver"} {
		over, unit, ok := perUnit(r, id, side)
		under, _, both := perUnit(r, from, side)
		if ok && both {
			text := shift(over, under, unit)
			lines.SayIf(text != "", "The profiles show the CPU time that %s changes at the %s: %s.", name, side, text)
		}
	}
	return lines
}

// shift lists the categories with the largest differences.
func shift(over, under map[string]float64, unit string) string {
	by, total := maps.Clone(over), 0.0
	for _, v := range over {
		total += v
	}
	for category, v := range under {
		by[category] -= v
	}
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(math.Abs(by[b]), math.Abs(by[a])), cmp.Compare(a, b))
	})
	var parts phrase.Lines
	for _, c := range names[:min(len(names), mostCategories)] {
		parts.SayIf(math.Abs(by[c]) >= leastShare*total, "%s (%s %s)", c, quantity.Signed(by[c], quantity.Significant(by[c])), unit)
	}
	return phrase.And(parts)
}

// perUnit returns the CPU time of a side by category, in ns for each byte. For
// request/response it is for each transaction.
func perUnit(r *model.Report, id, side string) (by map[string]float64, unit string, ok bool) {
	i, row := slices.IndexFunc(r.Profiles, func(p model.Profile) bool { return p.Scenario == id && p.Side == side }), r.Row(id)
	if i < 0 || row == nil {
		return nil, "", false
	}
	p := &r.Profiles[i]
	rate, unit := p.Bytes, "ns/byte"
	if t := row.Transactions; t != nil {
		rate, unit = t.Median, "ns/transaction"
		if p.Slowdown != nil {
			rate *= p.Slowdown.Median
		}
	}
	data, err := folded.Decode(p.Data)
	if err != nil || rate <= 0 {
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
