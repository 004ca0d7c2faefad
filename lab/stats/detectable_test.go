package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"windtunnel/internal/must"
)

func TestTheDetectableRatioIsFoundWithTheGivenPower(t *testing.T) {
	must.Long(t)
	for _, name := range []string{"lognormal", "drift"} {
		for _, n := range []int{6, 8, 10, 20} {
			got := powerFound(t, noises[name], n)
			t.Logf("%s, n = %2d: found with power %.3f", name, n, got)
			if got < 0.7 || got > 0.95 {
				t.Errorf("%s, n = %d: what 0.8 of experiments should find is found by %.3f", name, n, got)
			}
		}
	}
}

// powerFound computes the detectable difference from many pilot experiments,
// and makes one more experiment with that difference after each.
func powerFound(t *testing.T, noise func(*rand.Rand, []float64, []float64), n int) float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(17, uint64(n)))
	subject, baseline := make([]float64, n), make([]float64, n)
	const rounds = 700
	found := 0
	for range rounds {
		noise(rng, subject, baseline)
		r, ok, err := DetectableRatio(subject, baseline, 0.05, 0.8)
		if err != nil || !ok || r <= 0 {
			t.Fatalf("n = %d: %v, %v, %v", n, r, ok, err)
		}
		noise(rng, subject, baseline)
		for i := range subject {
			subject[i] *= 1 + r
		}
		if got, _, _ := Ratio(subject, baseline, 0.95); got.P <= 0.05 && got.Effect > 0 {
			found++
		}
	}
	return float64(found) / rounds
}

func TestMoreBlocksAndLessNoiseDetectSmallerDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(18, 0))
	subject, baseline := make([]float64, 60), make([]float64, 60)
	noises["lognormal"](rng, subject, baseline)
	few, _, _ := DetectableRatio(subject[:7], baseline[:7], 0.05, 0.8)
	many, _, _ := DetectableRatio(subject, baseline, 0.05, 0.8)
	strict, _, _ := DetectableRatio(subject, baseline, 0.001, 0.8)
	sure, _, _ := DetectableRatio(subject, baseline, 0.05, 0.99)
	if !(many > 0 && many < few/2 && strict > many && sure > many) {
		t.Errorf("detectable %v with 7 and %v with 60; %v at 0.001, %v with a power of 0.99", few, many, strict, sure)
	}
}

func TestNothingIsDetectableWithTooFewValues(t *testing.T) {
	xs := []float64{10, 11, 12, 13, 14, 15}
	ys := []float64{11, 11.5, 13, 13.1, 16, 15.2}
	for n := range 7 {
		if r, ok, err := DetectableRatio(ys[:n], xs[:n], 0.05, 0.8); err != nil || ok != (n >= 6) || ok != (r > 0) {
			t.Errorf("%d pairs: %v, %v, %v", n, r, ok, err)
		}
	}
}

func TestAnyDifferenceIsDetectableWithoutNoise(t *testing.T) {
	if r, ok, err := DetectableRatio([]float64{2, 2, 2, 2, 2, 2}, []float64{3, 3, 3, 3, 3, 3}, 0.05, 0.8); r != 0 || !ok || err != nil {
		t.Errorf("the detectable difference is %v (%v, %v), want 0", r, ok, err)
	}
}

func TestDetectableRefusesImpossibleQuestionsAndFigures(t *testing.T) {
	xs := []float64{1, 2, 3, 4, 5, 6}
	for _, q := range [][2]float64{{0, 0.8}, {0.05, 1}, {0.8, 0.05}, {math.NaN(), 0.8}, {0.05, math.NaN()}} {
		if _, ok, err := DetectableRatio(xs, xs, q[0], q[1]); ok || err == nil {
			t.Errorf("significance %v and power %v were taken", q[0], q[1])
		}
	}
	if _, ok, err := DetectableRatio(xs, []float64{1, 2, 3, 4, 5, math.NaN()}, 0.05, 0.8); ok || !errors.Is(err, ErrNotFinite) {
		t.Errorf("with NaN: %v, %v", ok, err)
	}
	if _, ok, err := DetectableRatio([]float64{1, 2, 3, 4, 5, 0}, xs, 0.05, 0.8); ok || err == nil {
		t.Errorf("with a zero: ok %v, no error", ok)
	}
}
