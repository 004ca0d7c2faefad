package stats

import (
	"errors"
	"math"
	"slices"
)

// SpreadRatio estimates how much more subject spreads than baseline: the ratio of their coefficients of
// variation (CV). Element i of both is from block i.
//
// The interval is that of Student's t for the logarithm of the ratio. The standard error comes from the jackknife:
// the ratio is computed again without each block. This takes into account that a disturbed block changes both
// values, and it does not assume that the values are normally distributed (Miller, Jackknifing Variances, 1968).
// A few outliers on one side make such an interval too narrow. A permutation test prevents a false difference: if
// the spreads are equal, the two values of a block, each divided by the median of its side, are exchangeable. If the test does
// not reject a ratio of 1, the interval is widened to include 1.
//
// With fewer than three blocks, ok is false. It is an error if the lengths differ, or if a CV is zero.
func SpreadRatio(subject, baseline []float64, level float64) (iv Interval, ok bool, err error) {
	if err := levelInRange(level); err != nil {
		return Interval{}, false, err
	}
	n := len(subject)
	if err := paired(subject, baseline); err != nil || n < 3 {
		return Interval{}, false, err
	}
	all, err := logSpreadRatio(subject, baseline, -1)
	if err != nil {
		return Interval{}, false, err
	}
	without := make([]float64, n) // logarithms of the ratio without block i
	for i := range without {
		if without[i], err = logSpreadRatio(subject, baseline, i); err != nil {
			return Interval{}, false, err
		}
	}
	half := NewJackknife(without).Half(level)
	iv = Interval{Median: ratioOf(all), Low: ratioOf(all - half), High: ratioOf(all + half), N: n, Level: level}
	if iv.Excludes(1) && swapped(subject, baseline, math.Abs(all)) > 1-level {
		// Just beyond 1: an interval that ends at 1 would confirm the claim that the ratio is at most 1.
		iv.Low, iv.High = min(iv.Low, math.Nextafter(1, 0)), max(iv.High, math.Nextafter(1, 2))
	}
	return iv, true, nil
}

// swapped returns the p-value of the permutation test. It swaps the two values in each possible choice of blocks. The result is the share
// of these choices in which the logarithm of the ratio of CVs is at least as far from 0 as seen.
func swapped(subject, baseline []float64, seen float64) float64 {
	medians := [2]float64{middleOf(subject), middleOf(baseline)}
	s, b := make([]float64, len(subject)), make([]float64, len(baseline))
	reached, all := 0, 0
	for signs := range signChanges(len(subject)) {
		for i, sign := range signs {
			s[i], b[i] = subject[i]/medians[0], baseline[i]/medians[1]
			if sign < 0 {
				s[i], b[i] = b[i], s[i]
			}
		}
		all++
		if log, err := logSpreadRatio(s, b, -1); err != nil || math.Abs(log) >= seen*(1-1e-9) {
			reached++
		}
	}
	return float64(reached) / float64(all)
}

// logSpreadRatio returns the logarithm of the ratio of CVs, computed without the block of this index; -1: with all blocks.
func logSpreadRatio(subject, baseline []float64, without int) (float64, error) {
	var cvs [2]float64
	for side, xs := range [][]float64{subject, baseline} {
		if without >= 0 {
			xs = slices.Concat(xs[:without], xs[without+1:])
		}
		cv, ok, err := CoefficientOfVariation(xs)
		if err != nil {
			return 0, err
		}
		if !ok || cv == 0 {
			return 0, errors.New("the ratio of spreads cannot be computed: all trials of one side have the same value, or their mean is zero")
		}
		cvs[side] = cv
	}
	return logRatio(cvs[0], cvs[1]), nil
}
