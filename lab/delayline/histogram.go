package delayline

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations. A bucket is at most 1/32 as wide as its durations. One process counts, and another
// one reads.
type histogram [buckets]atomic.Uint64

const (
	perOctave = 32
	// The last bucket has all durations above 2^32 ns, which is 4 s.
	buckets = (32 - 4) * perOctave
)

func (h *histogram) add(d time.Duration) { h[bucket(uint64(max(d, 0)))].Add(1) }

// bucket returns the number of the bucket of a duration in nanoseconds.
func bucket(ns uint64) int {
	shift := max(bits.Len64(ns)-6, 0) // ns>>shift is below 2 × perOctave
	return min(shift*perOctave+int(ns>>shift), buckets-1)
}

// lowest returns the smallest duration of a bucket.
func lowest(bucket int) time.Duration {
	shift := max(bucket/perOctave-1, 0)
	return time.Duration(bucket-shift*perOctave) << shift
}

// Counts has the number of frames by bucket of their lateness.
type Counts []uint64

// Quantile returns the lateness that a share of the frames does not exceed, within 3 %; 0 without
// frames.
func (c Counts) Quantile(share float64) time.Duration {
	total := c.Sum()
	below := uint64(0)
	for i, n := range c {
		if below += n; below > 0 && float64(below) >= share*float64(total) {
			return (lowest(i) + lowest(i+1) - 1) / 2
		}
	}
	return 0
}

// Sum returns the number of frames.
func (c Counts) Sum() (n uint64) {
	for _, in := range c {
		n += in
	}
	return n
}
