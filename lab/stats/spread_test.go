package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"windtunnel/internal/must"
)

func TestSpreadRatioIsThatOfTheCoefficientsOfVariation(t *testing.T) {
	baseline := []float64{98, 101, 99, 103, 100, 97, 102, 100}
	subject := make([]float64, len(baseline))
	for i, b := range baseline {
		subject[i] = 5e9 * (100 + 3*(b-100)) // another unit, and three times as far from the mean
	}
	iv, ok, err := SpreadRatio(subject, baseline, Level)
	if err != nil || !ok || math.Abs(iv.Median-3) > 1e-9 || iv.Low > 3 || iv.High < 3 || iv.N != 8 || iv.Level != Level {
		t.Errorf("the interval is %+v (ok %v, error %v); want a ratio of 3", iv, ok, err)
	}
	inverse := must.Get(intervalOf(SpreadRatio(baseline, subject, Level)))(t)
	if math.Abs(inverse.Low*iv.High-1) > 1e-9 || math.Abs(inverse.High*iv.Low-1) > 1e-9 {
		t.Errorf("with subject and baseline exchanged, the interval is %+v; want the inverse of %+v", inverse, iv)
	}
}

func intervalOf(iv Interval, ok bool, err error) (Interval, error) {
	if !ok && err == nil {
		err = errors.New("no interval")
	}
	return iv, err
}

func TestSpreadRatioNeedsThreeBlocksAndSpreads(t *testing.T) {
	if _, ok, err := SpreadRatio([]float64{1, 2}, []float64{1, 3}, Level); ok || err != nil {
		t.Errorf("two blocks give ok %v and the error %v; want false and no error", ok, err)
	}
	for name, c := range map[string][2][]float64{
		"no spread":                      {{1, 1, 1, 1}, {1, 2, 3, 4}},
		"no spread without one block":    {{1, 2, 3, 4}, {1, 1, 1, 4}},
		"one value more":                 {{1, 2, 3, 4}, {1, 2, 3}},
		"a value that is not a number":   {{1, 2, 3, math.NaN()}, {1, 2, 3, 4}},
		"a mean of zero, so no relation": {{-1, 1, -2, 2}, {1, 2, 3, 4}},
	} {
		if iv, ok, err := SpreadRatio(c[0], c[1], Level); ok || err == nil {
			t.Errorf("%s: SpreadRatio returns %+v (ok %v, error %v); want an error", name, iv, ok, err)
		}
	}
}

// Of simulated runs with two equal spreads, the interval must contain 1 in at least 95 %. Of simulated runs in which one spread is
// three times the other, the interval must exclude 1 in most.
func TestIntervalOfASpreadRatioHoldsTheTrueRatio(t *testing.T) {
	const runs, blocks = 500, 11
	widened := 0 // number of intervals that were widened to include 1
	simulate := func(name string, ratio float64) (held, found float64) {
		rng, wide := rand.New(rand.NewPCG(1, 2)), 0.0
		for range runs {
			subject, baseline := make([]float64, blocks), make([]float64, blocks)
			noises[name](rng, subject, baseline)
			for i, x := range subject {
				subject[i] = 1e9 + ratio*(x-1e9)
			}
			iv := must.Get(intervalOf(SpreadRatio(subject, baseline, Level)))(t)
			if !iv.Excludes(ratio) {
				held += 1.0 / runs
			}
			if iv.Excludes(1) {
				found += 1.0 / runs
			}
			if iv.Low == math.Nextafter(1, 0) || iv.High == math.Nextafter(1, 2) {
				widened++
			}
			wide += math.Log(iv.High/iv.Median) / runs
		}
		t.Logf("%s noise, one spread %g times the other: the interval includes the true ratio in %.1f %% of the runs, and excludes 1 in %.1f %%; its upper end is %.1f times the estimated ratio (geometric mean)", name, ratio, 100*held, 100*found, math.Exp(wide))
		return held, found
	}
	for name := range noises {
		if held, _ := simulate(name, 1); held < Level {
			t.Errorf("%s noise, equal spreads: the interval contains the true ratio 1 in %.1f %% of the simulated runs; want at least %.0f %%", name, 100*held, 100*Level)
		}
	}
	if widened == 0 {
		t.Error("the permutation test has widened no interval, so this test does not check it")
	}
	if held, found := simulate("lognormal", 3); held < 0.92 || found < 0.6 {
		t.Errorf("one spread three times the other: the interval contains the true ratio in %.1f %% of the simulated runs, want at least 92 %%; it excludes 1 in %.1f %%, want at least 60 %%", 100*held, 100*found)
	}
}
