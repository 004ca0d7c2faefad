package stats

import (
	"errors"
	"math"
	"testing"
	"testing/quick"

	"windtunnel/internal/must"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{4, 2}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64},
		{[]float64{5e-324, 5e-324}, 5e-324},
	} {
		if got, ok, err := Median(c.xs); got != c.want || !ok || err != nil {
			t.Errorf("Median(%v) = %v, %v, %v, want %v", c.xs, got, ok, err, c.want)
		}
	}
	if _, ok, err := Median(nil); ok || err != nil {
		t.Errorf("Median of nothing: ok %v, err %v", ok, err)
	}
	if _, ok, err := Median([]float64{1, math.NaN()}); ok || !errors.Is(err, ErrNotFinite) {
		t.Errorf("Median with NaN: ok %v, err %v", ok, err)
	}
}

func TestCoefficientOfVariation(t *testing.T) {
	for _, c := range []struct {
		name string
		xs   []float64
		want float64
		ok   bool
	}{
		// Mean 5, sum of squares 32, sample deviation √(32/7).
		{"by hand", []float64{2, 4, 4, 4, 5, 5, 7, 9}, math.Sqrt(32.0/7) / 5, true},
		{"a negative mean counts by its size", []float64{-9, -11}, math.Sqrt2 / 10, true},
		{"equal values", []float64{7, 7, 7}, 0, true},
		{"all zero", []float64{0, 0}, 0, true},
		{"around zero", []float64{-1, 1}, 0, false},
		{"one value", []float64{3}, 0, false},
		{"none", nil, 0, false},
		{"sums would overflow", []float64{math.MaxFloat64, math.MaxFloat64 / 2}, math.Sqrt2 / 4 / 0.75, true},
	} {
		got, ok, err := CoefficientOfVariation(c.xs)
		if err != nil || ok != c.ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, %v, %v, want %v, %v", c.name, got, ok, err, c.want, c.ok)
		}
	}
	if _, ok, err := CoefficientOfVariation([]float64{1, math.Inf(1)}); ok || !errors.Is(err, ErrNotFinite) {
		t.Errorf("with an infinity: ok %v, err %v", ok, err)
	}
}

func TestCoefficientOfVariationDoesNotDependOnTheUnit(t *testing.T) {
	property := func(raw [6]uint16, shift uint8) bool {
		xs, scaled := make([]float64, len(raw)), make([]float64, len(raw))
		for i, r := range raw {
			xs[i] = float64(r) + 1
			scaled[i] = math.Ldexp(xs[i], int(shift))
		}
		a, _, _ := CoefficientOfVariation(xs)
		b, _, _ := CoefficientOfVariation(scaled)
		return math.Abs(a-b) <= 1e-12
	}
	must.Succeed(t, quick.Check(property, nil))
}
