package traffic

import (
	"math"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

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
