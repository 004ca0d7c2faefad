package stats

import (
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram is a latency distribution, merged from those of several trials. So
// a percentile is one of all transactions and never an average of percentiles.
// The zero value is empty. Values have the recorded unit (nanoseconds in a
// sample).
type Histogram struct {
	packed *hdrhistogram.PackedHistogram
}

// Add merges an HdrHistogram in its V2 compressed encoding (base64) into h.
// Where ranges or precisions differ, h gets the wider of each. After an error h
// is unchanged.
func (h *Histogram) Add(encoded string) error {
	other, err := hdrhistogram.DecodePacked([]byte(encoded))
	if err != nil {
		return fmt.Errorf("decode HdrHistogram of %d characters: %w", len(encoded), err)
	}
	if h.packed == nil {
		h.packed = other
		return nil
	}
	if h.packed.TotalCount() > math.MaxInt64-other.TotalCount() {
		return fmt.Errorf("merge HdrHistogram: its %d values do not fit beside the %d already counted", other.TotalCount(), h.packed.TotalCount())
	}
	target := h.packed
	if !covers(target, other) {
		if target, err = widened(target, other); err != nil {
			return err
		}
	}
	if dropped := target.Merge(other); dropped != 0 {
		return fmt.Errorf("merge HdrHistogram: %d of %d values lie outside the range of the others", dropped, other.TotalCount())
	}
	h.packed = target
	return nil
}

// MergeHistograms adds up every distribution in encoded (see Histogram.Add).
func MergeHistograms(encoded []string) (h Histogram, ok bool, err error) {
	for i, e := range encoded {
		if err := h.Add(e); err != nil {
			return Histogram{}, false, fmt.Errorf("histogram %d of %d: %w", i+1, len(encoded), err)
		}
	}
	return h, h.Count() > 0, nil
}

// Encode returns the distribution in the encoding that Add reads.
func (h *Histogram) Encode() (string, error) {
	if h.packed == nil {
		return "", nil
	}
	b, err := h.packed.Encode()
	if err != nil {
		return "", fmt.Errorf("encode HdrHistogram: %w", err)
	}
	return string(b), nil
}

// Count returns how many values were recorded.
func (h *Histogram) Count() int64 {
	if h.packed == nil {
		return 0
	}
	return h.packed.TotalCount()
}

// Percentile returns the value at or below which p percent (0..100) of the
// recorded values lie, to the histogram's precision. ok is false if the
// histogram is empty or p is out of range.
func (h *Histogram) Percentile(p float64) (value float64, ok bool) {
	if h.Count() == 0 || !(p >= 0 && p <= 100) {
		return 0, false
	}
	return float64(h.packed.ValueAtPercentile(p)), true
}

// covers reports whether a can record every value of b without loss of
// precision.
func covers(a, b *hdrhistogram.PackedHistogram) bool {
	return a.LowestTrackableValue() <= b.LowestTrackableValue() &&
		reach(a) >= reach(b) && a.SignificantFigures() >= b.SignificantFigures()
}

// reach is the largest value that h certainly accepts: its declared maximum, or
// a larger one that its last bucket already recorded.
func reach(h *hdrhistogram.PackedHistogram) int64 {
	return max(h.HighestTrackableValue(), h.Max())
}

// widened returns a histogram with the values of a that also accepts those of
// b.
func widened(a, b *hdrhistogram.PackedHistogram) (*hdrhistogram.PackedHistogram, error) {
	lowest := min(a.LowestTrackableValue(), b.LowestTrackableValue())
	highest := max(reach(a), reach(b))
	digits := max(a.SignificantFigures(), b.SignificantFigures())
	if digits < 1 {
		// The constructor raises 0 digits to 1, which a very coarse range
		// cannot hold.
		return nil, fmt.Errorf("merge HdrHistogram: ranges differ, %d..%d and %d..%d, at a precision of no digit",
			a.LowestTrackableValue(), reach(a), b.LowestTrackableValue(), reach(b))
	}
	wide := hdrhistogram.NewPacked(lowest, highest, int(digits))
	if dropped := wide.Merge(a); dropped != 0 {
		return nil, fmt.Errorf("merge HdrHistogram: %d of %d values do not fit the common range %d..%d", dropped, a.TotalCount(), lowest, highest)
	}
	return wide, nil
}
