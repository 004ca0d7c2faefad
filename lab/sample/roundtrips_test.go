package sample

import (
	"testing"

	"windtunnel/internal/must"
)

func TestPointsHaveTheLatencyOfTheRoundTripsWithinThem(t *testing.T) {
	points := []Point{{At: 0.1, Seconds: 0.1}, {At: 0.2, Seconds: 0.1}, {At: 0.3, Seconds: 0.1}}
	SetLatency(points, []RoundTrips{
		{At: 0.03, Count: 3, Mean: 100, Max: 150},
		{At: 0.07, Count: 1, Mean: 300, Max: 300},
		{At: 0.26, Count: 1, Mean: 900, Max: 900}, // at 0.24 by the points' clock
		{At: 9, Count: 1, Mean: 1, Max: 1},
	}, -0.02)
	want := []Point{
		{At: 0.1, Seconds: 0.1, Latency: 150, LatencyMax: 300},
		{At: 0.2, Seconds: 0.1},
		{At: 0.3, Seconds: 0.1, Latency: 900, LatencyMax: 900},
	}
	must.Equal(t, want, points)
}
