package stats

import "math"

// SteadyFrom returns the index from which a series is steady, found from the
// series itself by the marginal standard error rule (MSER): the start-up whose
// removal leaves the mean of the rest known best, its squared deviations over
// its squared length smallest. At most the first half is taken for start-up; an
// index of len(ys)/2 means that the series may never have become steady. 0 for
// fewer than four values, and len(ys), nothing of it, where one is not finite.
//
// Single points are judged, not the means of five as in MSER-5: a trial of 3 s
// has only 30.
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
	scale := 0.0
	for _, y := range ys {
		scale = math.Max(scale, math.Abs(y))
	}
	if scale == 0 {
		return 0
	}
	best, from := math.Inf(1), 0
	count, mean, squares := 0.0, 0.0, 0.0
	for i := len(ys) - 1; i >= 0; i-- {
		// Welford's update, from the end, so that every rest is one step more.
		count++
		y := ys[i] / scale
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
