package traffic

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"windtunnel/lab/sample"
)

// Latency is the distribution of the round trip times of transactions, in nanoseconds.
type Latency struct {
	Count int64   `json:"count"`
	Min   int64   `json:"min_ns"`
	Mean  float64 `json:"mean_ns"`
	P50   int64   `json:"p50_ns"`
	P90   int64   `json:"p90_ns"`
	P99   int64   `json:"p99_ns"`
	P999  int64   `json:"p999_ns"`
	Max   int64   `json:"max_ns"`
	// Course has the round trips over time, since the window began; one list for all
	// connections.
	Course []sample.RoundTrips `json:"course"`
	// Histogram is HdrHistogram's V2 compressed encoding in base64.
	Histogram string `json:"histogram"`
}

// longestLatency is the upper end of the histogram's range, in nanoseconds.
const longestLatency = int64(60e9)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longestLatency, 3) }

// record counts one round trip. A time outside the histogram's range counts at the end
// of the range.
func (w *worker) record(began, ended int64) {
	ns := ended - began
	w.course.add(ended, ns)
	if w.stage.phase.Load() == measuring {
		w.latency.RecordValue(min(max(ns, 1), longestLatency)) // in range: no error
	}
}

func summarise(h *hdrhistogram.Histogram, course []sample.RoundTrips) (*Latency, error) {
	if h.TotalCount() == 0 {
		return nil, nil
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode the histogram of %d latencies: %w", h.TotalCount(), err)
	}
	return &Latency{
		Count: h.TotalCount(), Min: h.Min(), Mean: h.Mean(), Max: h.Max(),
		P50: h.ValueAtPercentile(50), P90: h.ValueAtPercentile(90),
		P99: h.ValueAtPercentile(99), P999: h.ValueAtPercentile(99.9),
		Course: course, Histogram: string(encoded),
	}, nil
}
