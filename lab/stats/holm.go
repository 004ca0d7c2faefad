package stats

import (
	"cmp"
	"math"
	"slices"
)

// Holm corrects the p-values of one family of tests. Compared with a level, the
// corrected values give a probability of at most that level for even one false
// finding. The results are in the order of ps and at most 1; they keep the
// ranking of ps. A NaN (a test that could not be made) stays NaN and does not
// count in the family.
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
