package stats

import (
	"math"
	"slices"
)

// SteadyFrom returns the index from which a series is steady, by the marginal
// standard error rule (MSER). The rule removes the start whose removal makes
// the mean of the other values most precise: the sum of squared deviations over the
// squared length is smallest. At most the first half is removed. An index of
// len(ys)/2 means that the series may never have become steady. The result is 0
// for fewer than four values, and len(ys) if a value is not finite.
//
// MSER-5 takes means of five points. Here single points are used, because a
// trial of 3 s has only 30.
//
// Source: White 1997, An Effective Truncation Heuristic for Bias Reduction in
// Simulation Output.
func SteadyFrom(ys []float64) int {
	if finite(ys) != nil {
		return len(ys)
	}
	if len(ys) < 4 {
		return 0
	}
	best, from := math.Inf(1), 0
	count, mean, squares := 0.0, 0.0, 0.0
	for i, y := range slices.Backward(divideByLargest(ys)) {
		// Welford's algorithm, from the last value to the first.
		count++
		before := y - mean
		mean += before / count
		squares += before * (y - mean)
		if i > len(ys)/2 {
			continue
		}
		if se := squares / (count * count); se <= best {
			best, from = se, i
		}
	}
	return from
}
