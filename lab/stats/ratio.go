package stats

import "fmt"

// PairedRatio returns the median of subject[i] / baseline[i] with its
// interval (see MedianInterval). The two are paired: element i of both was
// measured in the same block, so that what drifts within a run hits both
// alike. It is an error where the lengths differ, where a baseline is not
// positive or where a subject is negative, for such a pair has no ratio.
func PairedRatio(subject, baseline []float64, level float64) (iv Interval, ok bool, err error) {
	if len(subject) != len(baseline) {
		return Interval{}, false, fmt.Errorf("paired ratio of %d subject and %d baseline values: they must come in pairs", len(subject), len(baseline))
	}
	if err := finite(subject); err != nil {
		return Interval{}, false, fmt.Errorf("subject: %w", err)
	}
	if err := finite(baseline); err != nil {
		return Interval{}, false, fmt.Errorf("baseline: %w", err)
	}
	ratios := make([]float64, len(subject))
	for i := range subject {
		if baseline[i] <= 0 || subject[i] < 0 {
			return Interval{}, false, fmt.Errorf("pair %d of %d, %v over %v, has no ratio", i+1, len(subject), subject[i], baseline[i])
		}
		ratios[i] = subject[i] / baseline[i]
	}
	return MedianInterval(ratios, level)
}
