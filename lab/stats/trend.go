package stats

import (
	"fmt"
	"math"
	"slices"
)

// Slope returns the Theil–Sen estimate of the change of y per unit of x: the
// median slope of all pairs of points with different x. Up to 29 % of the
// points may have any value without much effect. ok is false if no two x
// differ. It computes n² / 2 slopes, so use it for series of some hundred
// points.
//
// Source: Sen 1968, Estimates of the Regression Coefficient Based on Kendall's
// Tau.
func Slope(xs, ys []float64) (slope float64, ok bool, err error) {
	if len(xs) != len(ys) {
		return 0, false, fmt.Errorf("slope of %d x and %d y: each point needs both", len(xs), len(ys))
	}
	if err := finite(xs); err != nil {
		return 0, false, fmt.Errorf("slope: x: %w", err)
	}
	if err := finite(ys); err != nil {
		return 0, false, fmt.Errorf("slope: y: %w", err)
	}
	slopes := make([]float64, 0, len(xs)*(len(xs)-1)/2)
	for i := range xs {
		for j := range i {
			if xs[i] != xs[j] {
				slopes = append(slopes, (ys[i]-ys[j])/(xs[i]-xs[j]))
			}
		}
	}
	if len(slopes) == 0 {
		return 0, false, nil
	}
	slices.Sort(slopes)
	slope = sortedMedian(slopes)
	return slope, !math.IsInf(slope, 0) && !math.IsNaN(slope), nil
}

// exactTrend is the longest series without ties that gets an exact p-value.
const exactTrend = 60

// MannKendall returns the two-sided p-value of a trend in ys: the probability
// that as many pairs rise, or fall, in a series of independent values.
// Neighbouring values of a rate are similar, so p is smaller than the true one:
// compare it with a strict level. It is exact for up to 60 values without ties,
// otherwise the normal approximation with corrections for ties and continuity.
// It is 1 for fewer than two values, and NaN if a value is not a number.
//
// Source: Kendall, Rank Correlation Methods; Gilbert 1987, 16.4.
func MannKendall(ys []float64) (p float64) {
	if slices.ContainsFunc(ys, math.IsNaN) {
		return math.NaN()
	}
	n := len(ys)
	if n < 2 {
		return 1
	}
	rising, falling := 0, 0
	for i, y := range ys {
		for _, before := range ys[:i] {
			switch {
			case y > before:
				rising++
			case y < before:
				falling++
			}
		}
	}
	if n <= exactTrend && rising+falling == n*(n-1)/2 {
		return twoSided(inversions(n), 1, rising)
	}
	return trendNormal(n, rising-falling, ys)
}

// inversions returns the probability of every number of rising pairs in a
// random order of n values.
func inversions(n int) []float64 {
	shares := []float64{1}
	for k := 2; k <= n; k++ {
		next := make([]float64, len(shares)+k-1)
		for i, share := range shares {
			for j := range k {
				next[i+j] += share / float64(k)
			}
		}
		shares = next
	}
	return shares
}

func trendNormal(n, score int, ys []float64) float64 {
	k := float64(n)
	variance := k * (k - 1) * (2*k + 5)
	for sorted := slices.Sorted(slices.Values(ys)); len(sorted) > 0; {
		t := 1
		for t < len(sorted) && sorted[t] == sorted[0] {
			t++
		}
		f := float64(t)
		variance -= f * (f - 1) * (2*f + 5)
		sorted = sorted[t:]
	}
	beyond := math.Abs(float64(score)) - 1
	if variance <= 0 || beyond <= 0 {
		return 1
	}
	return bothTails(beyond / math.Sqrt(variance/18))
}

// twoSided doubles the smaller tail of a null distribution at the observed
// outcome. ways[i] is how often, of total, the statistic is i.
func twoSided(ways []float64, total float64, seen int) float64 {
	below, above := 0.0, 0.0
	for _, w := range ways[:seen+1] {
		below += w
	}
	for _, w := range ways[seen:] {
		above += w
	}
	return min(1, 2*min(below, above)/total)
}

// bothTails is the probability that a standard normal value lies beyond ±z. It
// is accurate also where 1 minus the distribution function would be 0.
func bothTails(z float64) float64 { return math.Erfc(z / math.Sqrt2) }
