package experiment

import (
	"testing"

	"windtunnel/lab/cpudistance"
	"windtunnel/lab/sample"
)

func TestReadingsAreAddedToTheirSlices(t *testing.T) {
	points := []sample.Point{{At: 0.1, Seconds: 0.1}, {At: 0.2, Seconds: 0.1}, {At: 0.3, Seconds: 0.1}}
	origin := int64(5e9)
	var readings []cpudistance.Reading
	for _, r := range []struct {
		ms   int64
		trip float64
	}{{-20, 999}, {20, 50}, {60, 60}, {120, 0}, {160, 335}, {400, 999}} {
		readings = append(readings, cpudistance.Reading{Mono: origin + r.ms*1e6, RoundTrip: r.trip, Copy: [2]float64{1e9, 2e9}})
	}
	annotate(points, readings, origin)
	for i, want := range []sample.Point{{CPUDistance: 55, SenderMemoryCopy: 8e9, ReceiverMemoryCopy: 16e9}, {CPUDistance: 335, SenderMemoryCopy: 8e9, ReceiverMemoryCopy: 16e9}, {}} {
		p := points[i]
		if p.CPUDistance != want.CPUDistance || p.SenderMemoryCopy != want.SenderMemoryCopy || p.ReceiverMemoryCopy != want.ReceiverMemoryCopy {
			t.Errorf("slice %d has %+v, want %+v", i, p, want)
		}
	}
}
