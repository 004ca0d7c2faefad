package stats

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// SpreadRatio estimates how much more subject spreads than baseline: the ratio of their coefficients of
// variation. Element i of both is from block i. The interval is Student's t around the logarithm of the
// ratio. Its standard error is that of the jackknife over blocks, so it includes what a block does to both,
// and no normal distribution of the values is assumed (Miller, Jackknifing Variances, 1968). A few outliers
// on one side make such an interval too narrow. So it includes 1 unless a permutation test rejects 1 too:
// if nothing differs, the two values of a block, relative to their medians, could as well be swapped.
// SpreadRatio needs three blocks. It is an error if the lengths differ, or if a coefficient is zero.
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
	without := make([]float64, n) // one block each
	for i := range without {
		if without[i], err = logSpreadRatio(subject, baseline, i); err != nil {
			return Interval{}, false, err
		}
	}
	freedom := float64(n - 1)
	half := distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile((1+level)/2) * freedom * stat.StdDev(without, nil) / math.Sqrt(float64(n))
	iv = Interval{Median: ratioOf(all), Low: ratioOf(all - half), High: ratioOf(all + half), N: n, Level: level}
	if iv.Excludes(1) && swapped(subject, baseline, math.Abs(all)) > 1-level {
		// Beyond 1, because an end at 1 would confirm a claim of at most 1.
		iv.Low, iv.High = min(iv.Low, math.Nextafter(1, 0)), max(iv.High, math.Nextafter(1, 2))
	}
	return iv, true, nil
}

// swapped is the p-value of the permutation test: the share of the swaps whose ratio of spreads, as a
// logarithm, is at least as far from 0 as seen.
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

// logSpreadRatio returns the logarithm of the ratio of the coefficients of variation, without one block (-1: with all).
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
			return 0, errors.New("a ratio of spreads needs spreads above zero")
		}
		cvs[side] = cv
	}
	return logRatio(cvs[0], cvs[1]), nil
}
