package stats

import (
	"math"
	"testing"
)

func FuzzTests(f *testing.F) {
	f.Add([]byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0x7f, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		xs := floatsOf(raw[:min(len(raw), 8*120)])
		subject, baseline := xs[:len(xs)/2], xs[len(xs)/2:len(xs)/2*2]
		for name, test := range rankTests {
			got, ok, err := test(subject, baseline)
			if ok && (err != nil || !(got.P >= 0 && got.P <= 1) || !(got.Effect >= -1 && got.Effect <= 1) || !(got.Floor >= 0 && got.Floor <= 1)) {
				t.Errorf("%s of %v and %v: %+v, %v", name, subject, baseline, got, err)
			}
		}
		for _, detectable := range []detectableOf{DetectableRatio, DetectableUnpaired} {
			if r, ok, err := detectable(subject, baseline, 0.05, 0.8); ok && (err != nil || !(r >= 0) || math.IsInf(r, 0)) {
				t.Errorf("detectable in %v and %v: %v, %v", subject, baseline, r, err)
			}
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
