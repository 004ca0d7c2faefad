// Package stats is the lab's mathematics:
//
//   - medians with order-statistic intervals;
//   - ratios and differences of pairs, with interval and test;
//   - the ratio of two coefficients of variation, with its interval;
//   - runs against runs;
//   - the correction for many tests;
//   - the smallest difference that a comparison could have shown;
//   - trends and steadiness of a series, changes over many runs;
//   - variation, and merged latency distributions.
//
// It assumes little about distributions, is deterministic, and does no I/O.
//
// Two scenarios of one run are paired within blocks: Ratio, Difference,
// DetectableRatio. In two groups of runs each run is one value: Shift.
//
// Every function has three outcomes: a result; nothing to summarise (ok is
// false, err is nil); values that cannot be summarised (an error).
package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Level is the confidence of the reports' intervals.
const Level = 0.95

// ErrNotFinite is wrapped by every error about a NaN or an infinity.
var ErrNotFinite = errors.New("not a finite number")

// Median returns the middle value of xs, or the mean of the two middle values.
// It does not reorder xs.
func Median(xs []float64) (median float64, ok bool, err error) {
	if err := finite(xs); err != nil || len(xs) == 0 {
		return 0, false, err
	}
	return sortedMedian(slices.Sorted(slices.Values(xs))), true, nil
}

// CoefficientOfVariation returns the sample standard deviation (n − 1) over the
// absolute mean. It needs two values. A mean of zero has none, unless every
// value is zero.
func CoefficientOfVariation(xs []float64) (cv float64, ok bool, err error) {
	if err := finite(xs); err != nil || len(xs) < 2 {
		return 0, false, err
	}
	if slices.Min(xs) == slices.Max(xs) {
		return 0, true, nil
	}
	mean, deviation := stat.MeanStdDev(divideByLargest(xs), nil)
	if mean == 0 {
		return 0, false, nil
	}
	cv = deviation / math.Abs(mean)
	return cv, !math.IsInf(cv, 0), nil
}

// middleOf is Median of one or more finite values.
func middleOf(xs []float64) float64 {
	return sortedMedian(slices.Sorted(slices.Values(xs)))
}

func levelInRange(level float64) error {
	if !(level > 0 && level < 1) {
		return fmt.Errorf("confidence level %v: it must lie between 0 and 1", level)
	}
	return nil
}

// divideByLargest divides each value by the largest magnitude. So neither a sum nor a
// square of the values overflows.
func divideByLargest(xs []float64) []float64 {
	largest := 0.0
	for _, x := range xs {
		largest = math.Max(largest, math.Abs(x))
	}
	values := make([]float64, len(xs))
	if largest > 0 {
		for i, x := range xs {
			values[i] = x / largest
		}
	}
	return values
}

func finite(xs []float64) error {
	for i, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("value %d of %d is %v: %w", i+1, len(xs), x, ErrNotFinite)
		}
	}
	return nil
}

// sortedMedian halves before adding, so that huge values do not overflow.
func sortedMedian(sorted []float64) float64 {
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	a, b := sorted[mid-1], sorted[mid]
	if sum := a + b; !math.IsInf(sum, 0) {
		return sum / 2
	}
	return a/2 + b/2
}
