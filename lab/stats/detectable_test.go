package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

type detectableOf func(subject, baseline []float64, alpha, power float64) (float64, bool, error)

func TestTheDetectableRatioIsFoundWithThePowerAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		detectable detectableOf
		test       rankTest
		noise      string
	}{
		"paired, lognormal":   {DetectableRatio, WilcoxonSignedRank, "lognormal"},
		"paired, drift":       {DetectableRatio, WilcoxonSignedRank, "block drift"},
		"unpaired, lognormal": {DetectableUnpaired, MannWhitney, "lognormal"},
	} {
		for _, n := range []int{6, 8, 10, 20} {
			got := powerFound(t, c.detectable, c.test, noises[c.noise], n)
			t.Logf("%s, n = %2d: found with power %.3f", name, n, got)
			if got < 0.7 || got > 0.95 {
				t.Errorf("%s, n = %d: what 0.8 of experiments should find is found by %.3f", name, n, got)
			}
		}
	}
}

// powerFound has many pilot experiments say what is detectable, and makes one
// more with just that difference after each.
func powerFound(t *testing.T, detectable detectableOf, test rankTest, noise func(*rand.Rand, []float64, []float64), n int) float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(17, uint64(n)))
	subject, baseline := make([]float64, n), make([]float64, n)
	const rounds = 700
	found := 0
	for range rounds {
		noise(rng, subject, baseline)
		r, ok, err := detectable(subject, baseline, 0.05, 0.8)
		if err != nil || !ok || r <= 0 {
			t.Fatalf("n = %d: %v, %v, %v", n, r, ok, err)
		}
		noise(rng, subject, baseline)
		for i := range subject {
			subject[i] *= 1 + r
		}
		if got, _, _ := test(subject, baseline); got.P <= 0.05 && got.Effect > 0 {
			found++
		}
	}
	return float64(found) / rounds
}

func TestMoreBlocksAndLessNoiseDetectSmallerDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(18, 0))
	subject, baseline := make([]float64, 60), make([]float64, 60)
	noises["lognormal"](rng, subject, baseline)
	for name, detectable := range map[string]detectableOf{"paired": DetectableRatio, "unpaired": DetectableUnpaired} {
		few, _, _ := detectable(subject[:7], baseline[:7], 0.05, 0.8)
		many, _, _ := detectable(subject, baseline, 0.05, 0.8)
		if !(many > 0 && many < few/2) {
			t.Errorf("%s: detectable %v with 7, %v with 60", name, few, many)
		}
		strict, _, _ := detectable(subject, baseline, 0.001, 0.8)
		sure, _, _ := detectable(subject, baseline, 0.05, 0.99)
		if strict <= many || sure <= many {
			t.Errorf("%s: %v at 0.05 and 0.8, but %v at 0.001 and %v at 0.99", name, many, strict, sure)
		}
	}
}

func TestNothingIsDetectableWithTooFewValues(t *testing.T) {
	xs := []float64{10, 11, 12, 13, 14, 15}
	ys := []float64{11, 11.5, 13, 13.1, 16, 15.2}
	for n := range 7 {
		r, ok, err := DetectableRatio(ys[:n], xs[:n], 0.05, 0.8)
		if err != nil || ok != (n >= 6) || ok != (r > 0) {
			t.Errorf("%d pairs: %v, %v, %v", n, r, ok, err)
		}
		// 2 / C(2n, n) is 0.1 for three a side and 0.029 for four.
		r, ok, err = DetectableUnpaired(ys[:n], xs[:n], 0.05, 0.8)
		if err != nil || ok != (n >= 4) || ok != (r > 0) {
			t.Errorf("%d values a side: %v, %v, %v", n, r, ok, err)
		}
	}
}

func TestAnyDifferenceIsDetectableWithoutNoise(t *testing.T) {
	subject, baseline := []float64{2, 2, 2, 2, 2, 2}, []float64{3, 3, 3, 3, 3, 3}
	for name, detectable := range map[string]detectableOf{"paired": DetectableRatio, "unpaired": DetectableUnpaired} {
		if r, ok, err := detectable(subject, baseline, 0.05, 0.8); r != 0 || !ok || err != nil {
			t.Errorf("%s: %v, %v, %v", name, r, ok, err)
		}
	}
}

func TestDetectableRefusesImpossibleQuestionsAndFigures(t *testing.T) {
	xs := []float64{1, 2, 3, 4, 5, 6}
	for name, detectable := range map[string]detectableOf{"paired": DetectableRatio, "unpaired": DetectableUnpaired} {
		for _, q := range [][2]float64{{0, 0.8}, {0.05, 1}, {0.8, 0.05}, {math.NaN(), 0.8}, {0.05, math.NaN()}} {
			if _, ok, err := detectable(xs, xs, q[0], q[1]); ok || err == nil {
				t.Errorf("%s: significance %v and power %v were taken", name, q[0], q[1])
			}
		}
		if _, ok, err := detectable(xs, []float64{1, 2, 3, 4, 5, math.NaN()}, 0.05, 0.8); ok || !errors.Is(err, ErrNotFinite) {
			t.Errorf("%s with NaN: %v, %v", name, ok, err)
		}
		if _, ok, err := detectable(xs, []float64{1, 2, 3, 4, 5, 0}, 0.05, 0.8); ok || err == nil {
			t.Errorf("%s with a zero baseline: ok %v, no error", name, ok)
		}
		if _, ok, err := detectable([]float64{1, 2, 3, 4, 5, 0}, xs, 0.05, 0.8); ok || err != nil {
			t.Errorf("%s with a zero subject: %v, %v", name, ok, err)
		}
	}
}
