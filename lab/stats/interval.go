package stats

import (
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is an estimate with bounds that hold the true value with confidence
// Level. The unit is that of the values; a ratio has none.
type Interval struct {
	Median float64 // the estimate: a median, or a ratio of two
	Low    float64
	High   float64
	N      int     // number of values
	Level  float64 // real confidence of [Low, High], 0..1
}

// Excludes reports whether x lies outside [Low, High].
func (iv Interval) Excludes(x float64) bool { return x < iv.Low || x > iv.High }

// MedianInterval returns the median of xs and its interval by order statistics:
// the k-th smallest and the k-th largest value. k is the largest one whose
// confidence, 1 − 2·P(Binomial(n, ½) < k), is at least level (0 < level < 1).
// If even the extremes do not reach level (fewer than 6 values at 0.95), the
// interval is the extremes, and Level is their confidence, 1 − 2·½ⁿ.
//
// Source: David & Nagaraja, Order Statistics, 3rd ed., 7.1. The interval is
// symmetric in rank, so that the interval of the negated values is the negated
// interval. benchmath's may be one rank shorter at one end.
func MedianInterval(xs []float64, level float64) (iv Interval, ok bool, err error) {
	if err := levelInRange(level); err != nil {
		return Interval{}, false, err
	}
	if err := finite(xs); err != nil || len(xs) == 0 {
		return Interval{}, false, err
	}
	sorted := slices.Sorted(slices.Values(xs))
	n := len(sorted)
	k := rank(n, level)
	return Interval{
		Median: sortedMedian(sorted),
		Low:    sorted[k-1],
		High:   sorted[n-k],
		N:      n,
		Level:  coverage(n, k),
	}, true, nil
}

// MinimumTrials returns the smallest n whose extremes hold the median with
// confidence level: 6 for 0.95.
func MinimumTrials(level float64) int {
	n := 1
	for coverage(n, 1) < level && n < 64 {
		n++
	}
	return n
}

// rank returns the largest k ≥ 1 with coverage(n, k) ≥ level, or 1. Coverage
// falls as k grows.
func rank(n int, level float64) int {
	top := (n + 1) / 2
	beyond := sort.Search(top, func(i int) bool { return coverage(n, i+1) < level })
	return max(beyond, 1)
}

// coverage is the confidence of [k-th smallest, k-th largest] of n values.
func coverage(n, k int) float64 {
	below := distuv.Binomial{N: float64(n), P: 0.5}.CDF(float64(k - 1))
	return max(0, 1-2*below)
}
