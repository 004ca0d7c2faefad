package traffic

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
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

// course counts the round trips of one worker in slices of time, from the start of
// its loop to the end. So it also has the warm-up and the cool-down.
type course struct {
	began  int64 // now()
	every  int64 // length of a slice, ns
	slices []courseSlice
}

type courseSlice struct{ count, sum, most int64 }

const (
	// shortestSlice is several times shorter than a slice of the meters' series.
	shortestSlice = 20 * time.Millisecond
	mostSlices    = 5000
)

// newCourse has room for a run of this timing. The hot path must not allocate.
func newCourse(t suite.Timing) course {
	every := max(shortestSlice, t.Total()/mostSlices)
	return course{every: int64(every), slices: make([]courseSlice, t.Total()/every+1)}
}

// add counts a round trip that ended at a time. It ignores round trips after the
// planned end.
func (c *course) add(ended, ns int64) {
	if c.every == 0 {
		return
	}
	if c.began == 0 {
		c.began = ended - ns
	}
	if i := (ended - c.began) / c.every; i < int64(len(c.slices)) {
		s := &c.slices[i]
		s.count++
		s.sum += ns
		s.most = max(s.most, ns)
	}
}

// roundTrips lists the slices that have a round trip. Their times are seconds since
// the window began at a time by now().
func (c *course) roundTrips(window int64) (list []sample.RoundTrips) {
	for i, s := range c.slices {
		if s.count > 0 {
			middle := float64(c.began-window) + (float64(i)+0.5)*float64(c.every)
			list = append(list, sample.RoundTrips{At: math.Round(middle/1e6) / 1e3, Count: s.count, Mean: s.sum / s.count, Max: s.most})
		}
	}
	return list
}
