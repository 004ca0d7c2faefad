package stats

import (
	"cmp"
	"math"
	"slices"
)

// Holm returns the p-values of one family of tests, corrected so that the
// probability of even one false finding among them is at most the level they
// are held against. The results stand in the order given, grow with ps and are
// 1 at most. A NaN (a test that could not be made) stays NaN and does not count
// as one of the family.
//
// Source: Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure.
func Holm(ps []float64) []float64 {
	adjusted := slices.Clone(ps)
	order := make([]int, 0, len(ps))
	for i, p := range ps {
		if !math.IsNaN(p) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	highest := 0.0
	for done, i := range order {
		highest = min(1, max(highest, ps[i]*float64(len(order)-done)))
		adjusted[i] = highest
	}
	return adjusted
}
