package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"testing/quick"

	"windtunnel/internal/must"
)

func TestTheSlopeOfALineIsFoundInSpiteOfAQuarterOfOutliers(t *testing.T) {
	var xs, ys []float64
	for i := range 40 {
		x := 0.1 * float64(i)
		y := 5 - 2*x
		if i%4 == 1 {
			y += 1000 * float64(1+i%3)
		}
		xs, ys = append(xs, x), append(ys, y)
	}
	if got, ok, err := Slope(xs, ys); err != nil || !ok || math.Abs(got+2) > 1e-9 {
		t.Errorf("slope %v, %v, %v, want -2", got, ok, err)
	}
}

func TestSlopeNeedsTwoDifferentX(t *testing.T) {
	for name, c := range map[string]struct{ xs, ys []float64 }{
		"none": {nil, nil}, "one": {[]float64{1}, []float64{2}}, "a vertical": {[]float64{3, 3, 3}, []float64{1, 2, 3}},
	} {
		if got, ok, err := Slope(c.xs, c.ys); ok || err != nil {
			t.Errorf("%s: the slope is %v (%v, %v), want none", name, got, ok, err)
		}
	}
	if _, ok, err := Slope([]float64{1, 2}, []float64{1}); ok || err == nil {
		t.Error("a point without y was taken")
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		if _, ok, err := Slope([]float64{1, 2}, []float64{1, bad}); ok || !errors.Is(err, ErrNotFinite) {
			t.Errorf("y of %v: ok %v, err %v", bad, ok, err)
		}
		if _, ok, err := Slope([]float64{1, bad}, []float64{1, 2}); ok || !errors.Is(err, ErrNotFinite) {
			t.Errorf("x of %v: ok %v, err %v", bad, ok, err)
		}
	}
}

func TestTheSlopeOfTheNegatedSeriesIsNegated(t *testing.T) {
	property := func(raw [14]int16) bool {
		var xs, ys, down []float64
		for i, r := range raw {
			xs, ys, down = append(xs, float64(i)), append(ys, float64(r)), append(down, -float64(r))
		}
		a, _, _ := Slope(xs, ys)
		b, _, _ := Slope(xs, down)
		return a == -b && math.Abs(MannKendall(ys)-MannKendall(down)) < 1e-12
	}
	must.Succeed(t, quick.Check(property, nil))
}

func TestMannKendallOfARisingSeriesIsTheRarestOrder(t *testing.T) {
	// Of 5! orders one rises all through and one falls.
	if got := MannKendall([]float64{1, 2, 5, 7, 8}); math.Abs(got-2.0/120) > 1e-12 {
		t.Errorf("p = %v, want 2/120", got)
	}
}

func TestMannKendallFindsATrendInNoiseAsOftenAsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 0))
	for _, n := range []int{12, 30, 80} {
		const rounds = 3000
		found := 0
		ys := make([]float64, n)
		for range rounds {
			for i := range ys {
				ys[i] = rng.NormFloat64()
			}
			if MannKendall(ys) <= 0.05 {
				found++
			}
		}
		if got := float64(found) / rounds; got < 0.03 || got > 0.065 {
			t.Errorf("n = %d: finds a trend in %.3f of series without one", n, got)
		}
	}
}

func TestMannKendallOfSeriesWithoutOrder(t *testing.T) {
	for name, c := range map[string]struct {
		ys   []float64
		want float64
	}{
		"none": {nil, 1}, "one": {[]float64{4}, 1}, "two": {[]float64{1, 2}, 1}, "all equal": {make([]float64, 30), 1},
	} {
		if got := MannKendall(c.ys); got != c.want {
			t.Errorf("%s: p = %v, want %v", name, got, c.want)
		}
	}
	if got := MannKendall([]float64{1, math.NaN(), 2}); !math.IsNaN(got) {
		t.Errorf("with NaN: p = %v", got)
	}
}
