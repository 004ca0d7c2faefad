package traffic

import (
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestACourseHasTheRoundTripsOfEachSlice(t *testing.T) {
	ms := time.Millisecond.Nanoseconds()
	c := newCourse(suite.Timing{Warmup: 40 * time.Millisecond, Duration: 60 * time.Millisecond})
	c.add(1002*ms, 2*ms) // the loop began at 1000 ms
	c.add(1008*ms, 6*ms)
	c.add(1055*ms, 40*ms)
	c.add(1500*ms, 9*ms) // after the planned end
	want := []sample.RoundTrips{
		{At: -0.03, Count: 2, Mean: 4e6, Max: 6e6},
		{At: 0.01, Count: 1, Mean: 40e6, Max: 40e6},
	}
	must.Equal(t, want, c.roundTrips(1040*ms))
	if day := newCourse(suite.Timing{Duration: 24 * time.Hour}); len(day.slices) > mostSlices+1 {
		t.Errorf("a day has %d slices", len(day.slices))
	}
}
