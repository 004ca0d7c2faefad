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
		subject[i] = 5e9 * (100 + 3*(b-100)) // another unit, and three times the distance from the mean
	}
	iv, ok, err := SpreadRatio(subject, baseline, Level)
	if err != nil || !ok || math.Abs(iv.Median-3) > 1e-9 || iv.Low > 3 || iv.High < 3 || iv.N != 8 || iv.Level != Level {
		t.Errorf("%+v, %v, %v; want a ratio of 3", iv, ok, err)
	}
	inverse := must.Get(intervalOf(SpreadRatio(baseline, subject, Level)))(t)
	if math.Abs(inverse.Low*iv.High-1) > 1e-9 || math.Abs(inverse.High*iv.Low-1) > 1e-9 {
		t.Errorf("%+v is not the inverse of %+v", inverse, iv)
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
		t.Errorf("two blocks: %v, %v", ok, err)
	}
	for name, c := range map[string][2][]float64{
		"no spread":                      {{1, 1, 1, 1}, {1, 2, 3, 4}},
		"no spread without one block":    {{1, 2, 3, 4}, {1, 1, 1, 4}},
		"one value more":                 {{1, 2, 3, 4}, {1, 2, 3}},
		"a value that is not a number":   {{1, 2, 3, math.NaN()}, {1, 2, 3, 4}},
		"a mean of zero, so no relation": {{-1, 1, -2, 2}, {1, 2, 3, 4}},
	} {
		if iv, ok, err := SpreadRatio(c[0], c[1], Level); ok || err == nil {
			t.Errorf("%s: %+v, %v, %v; want an error", name, iv, ok, err)
		}
	}
}

// If nothing differs, the interval holds 1 in 95 % of simulated runs or more. A spread of three times
// another is found in most.
func TestIntervalOfASpreadRatioHoldsTheTrueRatio(t *testing.T) {
	const runs, blocks = 500, 11
	widened := 0 // because the permutation test does not reject 1
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
		t.Logf("%s, %g times the spread: the interval has the true ratio in %.1f %% of the runs and not 1 in %.1f %%; its ends are a factor of %.1f from the ratio", name, ratio, 100*held, 100*found, math.Exp(wide))
		return held, found
	}
	for name := range noises {
		if held, _ := simulate(name, 1); held < Level {
			t.Errorf("%s: the interval holds the true ratio in %.1f %% of the runs", name, 100*held)
		}
	}
	if widened == 0 {
		t.Error("no interval is wider because of the permutation test")
	}
	if held, found := simulate("lognormal", 3); held < 0.92 || found < 0.6 {
		t.Errorf("three times the spread: the interval has the true ratio in %.1f %% of the runs and not 1 in %.1f %%", 100*held, 100*found)
	}
}
