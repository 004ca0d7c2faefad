package stats

import (
	"math"
	"testing"
)

func FuzzEstimates(f *testing.F) {
	f.Add([]byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0}, 0.95)
	f.Add([]byte{0x7f, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1}, 0.5)
	f.Add([]byte{}, 0.99)
	f.Fuzz(func(t *testing.T, raw []byte, level float64) {
		xs := floatsOf(raw[:min(len(raw), 8*120)])
		subject, baseline := xs[:len(xs)/2], xs[len(xs)/2:len(xs)/2*2]
		for none, of := range []estimateOf{Difference, Ratio} {
			e, ok, err := of(subject, baseline, level)
			if ok && (err != nil || !(e.Low <= e.Median && e.Median <= e.High) || math.IsInf(e.High, 0) ||
				!(e.Level >= 0 && e.Level <= 1) || !(e.P >= e.Floor && e.P <= 1) || !(e.Effect >= -1 && e.Effect <= 1)) {
				t.Errorf("%v and %v at %v: %+v, %v", subject, baseline, level, e, err)
			}
			if ok && e.Level >= level && e.Excludes(float64(none)) != (e.P <= 1-level) {
				t.Errorf("%v and %v at %v: %+v", subject, baseline, level, e)
			}
		}
		if r, ok, err := DetectableRatio(subject, baseline, 0.05, 0.8); ok && (err != nil || !(r >= 0) || math.IsInf(r, 0)) {
			t.Errorf("detectable in %v and %v: %v, %v", subject, baseline, r, err)
		}
	})
}

func FuzzSeries(f *testing.F) {
	f.Add([]byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0x7f, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		ys := floatsOf(raw[:min(len(raw), 8*40)])
		if from := SteadyFrom(ys); from < 0 || from > len(ys) {
			t.Errorf("steady from %d of %d", from, len(ys))
		}
		if p := MannKendall(ys); p < 0 || p > 1 {
			t.Errorf("trend of %v: p %v", ys, p)
		}
		xs, groups := make([]float64, len(ys)), make([][]float64, len(ys))
		for i, y := range ys {
			xs[i], groups[i] = float64(i), []float64{y}
		}
		if slope, ok, err := Slope(xs, ys); ok && (err != nil || math.IsNaN(slope) || math.IsInf(slope, 0)) {
			t.Errorf("slope of %v: %v, %v", ys, slope, err)
		}
		last := 0
		for _, c := range ChangePoints(groups, 0.05) {
			if c.Index < last+runsASide || c.Index > len(groups)-runsASide || !(c.P > 0 && c.P <= 0.05) {
				t.Errorf("change points of %v: %+v", ys, c)
			}
			last = c.Index
		}
	})
}
