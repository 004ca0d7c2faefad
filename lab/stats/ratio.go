package stats

import (
	"fmt"
	"math"
)

// PairedRatio returns the median of subject[i] / baseline[i] with its
// interval (see MedianInterval). The two are paired: element i of both was
// measured in the same block, so that what drifts within a run hits both
// alike. It is an error where the lengths differ, where a baseline is not
// positive or where a subject is negative, for such a pair has no ratio.
func PairedRatio(subject, baseline []float64, level float64) (iv Interval, ok bool, err error) {
	ratios, err := pairRatios(subject, baseline)
	if err != nil {
		return Interval{}, false, err
	}
	return MedianInterval(ratios, level)
}

// pairRatios returns subject[i] / baseline[i].
func pairRatios(subject, baseline []float64) ([]float64, error) {
	if err := paired("ratio", subject, baseline); err != nil {
		return nil, err
	}
	ratios := make([]float64, len(subject))
	for i := range subject {
		if baseline[i] <= 0 || subject[i] < 0 {
			return nil, fmt.Errorf("pair %d of %d, %v over %v, has no ratio", i+1, len(subject), subject[i], baseline[i])
		}
		if ratios[i] = subject[i] / baseline[i]; math.IsInf(ratios[i], 0) {
			return nil, fmt.Errorf("pair %d of %d, %v over %v: the ratio is %w", i+1, len(subject), subject[i], baseline[i], ErrNotFinite)
		}
	}
	return ratios, nil
}
