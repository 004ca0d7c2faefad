package sample

import (
	"cmp"
	"slices"
)

// RoundTrips summarises the transactions that ended in a short slice of time.
type RoundTrips struct {
	At    float64 `json:"at_s"` // middle of the slice, seconds since the start of a window, to the ms
	Count int64   `json:"count"`
	Mean  int64   `json:"mean_ns"`
	Max   int64   `json:"max_ns"`
}

// SetLatency sets the latency of every point from the round trips within it. points are
// in the order of time. offset is the time from the start of the points' window to the
// start of the round trips' window, in seconds.
func SetLatency(points []Point, trips []RoundTrips, offset float64) {
	counts := make([]int64, len(points))
	for _, t := range trips {
		at := t.At + offset
		i, _ := slices.BinarySearchFunc(points, at, func(p Point, at float64) int { return cmp.Compare(p.At, at) })
		if i == len(points) || at <= points[i].At-points[i].Seconds {
			continue
		}
		p := &points[i]
		counts[i] += t.Count
		p.Latency += (float64(t.Mean) - p.Latency) * float64(t.Count) / float64(counts[i])
		p.LatencyMax = max(p.LatencyMax, float64(t.Max))
	}
}
