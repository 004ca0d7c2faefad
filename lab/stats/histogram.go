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

// Add merges encoded, an HdrHistogram in its V2 compressed encoding (base64), into h.
// All histograms must have the same range and precision. The histograms of the
// generator have.
func (h *Histogram) Add(encoded string) error {
	other, err := hdrhistogram.DecodePacked([]byte(encoded))
	if err != nil {
		return fmt.Errorf("decode HdrHistogram of %d characters: %w", len(encoded), err)
	}
	if h.packed == nil {
		h.packed = other
		return nil
	}
	if !sameRangeAndPrecision(h.packed, other) {
		return fmt.Errorf("merge HdrHistogram: its range or precision is not that of the histograms before it (%d values)", h.packed.TotalCount())
	}
	if h.packed.TotalCount() > math.MaxInt64-other.TotalCount() {
		return fmt.Errorf("merge HdrHistogram: the count of its %d values and of %d earlier values exceeds 2^63 − 1", other.TotalCount(), h.packed.TotalCount())
	}
	if dropped := h.packed.Merge(other); dropped != 0 {
		return fmt.Errorf("merge HdrHistogram: %d of %d values are outside the range of the earlier histograms", dropped, other.TotalCount())
	}
	return nil
}

func sameRangeAndPrecision(a, b *hdrhistogram.PackedHistogram) bool {
	return a.LowestTrackableValue() == b.LowestTrackableValue() &&
		a.HighestTrackableValue() == b.HighestTrackableValue() && a.SignificantFigures() == b.SignificantFigures()
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
