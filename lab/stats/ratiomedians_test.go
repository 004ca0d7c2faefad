package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"testing/quick"
)

type intervalOf func(subject, baseline []float64, level float64) (Interval, bool, error)

func TestRatioOfMediansHoldsTheTrueRatioAsOftenAsItSays(t *testing.T) {
	for name, noise := range noises {
		t.Run(name, func(t *testing.T) { assertCoverage(t, RatioOfMedians, noise, 2000) })
	}
}

// assertCoverage simulates experiments whose true ratio is 1.
func assertCoverage(t *testing.T, interval intervalOf, noise func(*rand.Rand, []float64, []float64), rounds int) {
	t.Helper()
	for _, n := range []int{6, 8, 10, 20} {
		rng := rand.New(rand.NewPCG(11, uint64(n)))
		subject, baseline := make([]float64, n), make([]float64, n)
		held, width := 0, 0.0
		for range rounds {
			noise(rng, subject, baseline)
			iv, ok, err := interval(subject, baseline, 0.95)
			if !ok || err != nil || iv.Level != 0.95 || iv.N != n {
				t.Fatalf("%+v, %v, %v", iv, ok, err)
			}
			if !iv.Excludes(1) {
				held++
			}
			width += iv.High - iv.Low
		}
		got := float64(held) / float64(rounds)
		t.Logf("n = %2d: holds the true ratio in %.3f of %d, mean width %.3f", n, got, rounds, width/float64(rounds))
		if got < 0.91 || got > 0.99 {
			t.Errorf("n = %d: holds the true ratio in %.3f of rounds, want 0.91 to 0.99", n, got)
		}
	}
}

func TestUnpairedRatioHoldsTheTrueRatioAsOftenAsItSays(t *testing.T) {
	for name, noise := range noises {
		if name == "block drift" {
			continue // two runs share no blocks
		}
		t.Run(name, func(t *testing.T) { assertCoverage(t, UnpairedRatio, noise, 1500) })
	}
}

func TestUnpairedRatioHoldsTheTrueRatioWhereOneSideHasManyMore(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 0))
	subject, baseline := make([]float64, 7), make([]float64, 40)
	const rounds = 600
	held := 0
	for range rounds {
		for _, side := range [][]float64{subject, baseline} {
			for i := range side {
				side[i] = math.Exp(0.05 * rng.NormFloat64())
			}
		}
		if iv, _, err := UnpairedRatio(subject, baseline, 0.95); err != nil || iv.N != 7 {
			t.Fatalf("%+v, %v", iv, err)
		} else if !iv.Excludes(1) {
			held++
		}
	}
	if got := float64(held) / rounds; got < 0.91 || got > 0.99 {
		t.Errorf("holds the true ratio in %.3f of rounds, want 0.91 to 0.99", got)
	}
}

func TestRatioOfMediansIsThatOfTheMedians(t *testing.T) {
	subject := []float64{9, 28, 18, 13, 23, 11}
	baseline := []float64{10, 30, 20, 15, 25, 12}
	for name, interval := range map[string]intervalOf{"paired": RatioOfMedians, "unpaired": UnpairedRatio} {
		iv, ok, err := interval(subject, baseline, 0.95)
		if err != nil || !ok || iv.Median != 15.5/17.5 || iv.N != 6 || iv.Level != 0.95 || iv.Excludes(iv.Median) {
			t.Errorf("%s: %+v, %v, %v", name, iv, ok, err)
		}
	}
	// Blocks drift threefold: within them the ratio is 0.87 to 0.93.
	if iv, _, _ := RatioOfMedians(subject, baseline, 0.95); iv.Low < 13.0/15-1e-12 || iv.High > 28.0/30+1e-12 || !iv.Excludes(1) {
		t.Errorf("paired: %+v leaves the range of the blocks' ratios", iv)
	}
	if iv, _, _ := UnpairedRatio(subject, baseline, 0.95); !(iv.Low < 0.6 && iv.High > 1.5) {
		t.Errorf("unpaired: %+v leaves out what drift did", iv)
	}
}

func TestTooFewPairsGiveTheExtremesAndTheirOwnConfidence(t *testing.T) {
	subject, baseline := []float64{9, 33, 20, 14, 26}, []float64{10, 30, 20, 15, 25}
	for n, level := range map[int]float64{1: 0, 2: 0.5, 3: 0.75, 4: 0.875, 5: 0.9375} {
		iv, ok, err := RatioOfMedians(subject[:n], baseline[:n], 0.95)
		extremes, _, _ := PairedRatio(subject[:n], baseline[:n], 0.95)
		if err != nil || !ok || iv.Level != level || iv.Low != extremes.Low || iv.High != extremes.High || iv.Enough(0.95) {
			t.Errorf("n = %d: %+v, %v, %v, want level %v and %+v", n, iv, ok, err, level, extremes)
		}
	}
	iv, ok, err := UnpairedRatio([]float64{9, 10, 11}, []float64{10, 20}, 0.95)
	if want := (Interval{Median: 10.0 / 15, Low: 9.0 / 20, High: 1.1, N: 2, Level: 0.75 * 0.5}); err != nil || !ok || !near(iv, want) {
		t.Errorf("unpaired: %+v, %v, %v, want %+v", iv, ok, err, want)
	}
}

func TestRatioWithoutVarianceIsAPoint(t *testing.T) {
	subject, baseline := make([]float64, 9), make([]float64, 9)
	for i := range subject {
		subject[i], baseline[i] = 0.7, 0.3
	}
	for name, interval := range map[string]intervalOf{"paired": RatioOfMedians, "unpaired": UnpairedRatio} {
		iv, ok, err := interval(subject, baseline, 0.95)
		x := 0.7 / 0.3
		if want := (Interval{Median: x, Low: x, High: x, N: 9, Level: 0.95}); err != nil || !ok || iv != want {
			t.Errorf("%s: %+v, %v, %v, want %+v", name, iv, ok, err, want)
		}
	}
}

func TestRatioOfMediansOfASystemWithItselfIsOne(t *testing.T) {
	property := func(raw [9]uint32) bool {
		xs, _ := positive(raw[:], raw[:])
		iv, ok, err := RatioOfMedians(xs, xs, 0.95)
		return err == nil && ok && iv.Median == 1 && iv.Low == 1 && iv.High == 1
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestRatiosRefuseWhatHasNoRatio(t *testing.T) {
	for name, c := range map[string]struct{ subject, baseline []float64 }{
		"zero baseline":      {[]float64{1, 1}, []float64{1, 0}},
		"negative baseline":  {[]float64{1}, []float64{-1}},
		"negative subject":   {[]float64{-1}, []float64{1}},
		"NaN":                {[]float64{math.NaN()}, []float64{1}},
		"infinite baseline":  {[]float64{1}, []float64{math.Inf(1)}},
		"ratio not a number": {[]float64{math.MaxFloat64}, []float64{5e-324}},
	} {
		for kind, interval := range map[string]intervalOf{"paired": RatioOfMedians, "unpaired": UnpairedRatio} {
			if iv, ok, err := interval(c.subject, c.baseline, 0.95); err == nil || ok || iv != (Interval{}) {
				t.Errorf("%s, %s: %+v, %v, no error", name, kind, iv, ok)
			}
		}
	}
	if _, _, err := RatioOfMedians([]float64{1, math.NaN()}, []float64{1, 1}, 0.95); !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN: %v does not say that it is not finite", err)
	}
	if _, ok, err := RatioOfMedians([]float64{1}, []float64{1, 2}, 0.95); ok || err == nil {
		t.Error("lengths that differ were taken as pairs")
	}
	for kind, interval := range map[string]intervalOf{"paired": RatioOfMedians, "unpaired": UnpairedRatio} {
		if _, ok, err := interval(nil, nil, 0.95); ok || err != nil {
			t.Errorf("%s of nothing: ok %v, err %v", kind, ok, err)
		}
		if _, ok, err := interval([]float64{1}, []float64{1}, 1.5); ok || err == nil {
			t.Errorf("%s at a level of 1.5 was taken", kind)
		}
	}
}

func TestAFailedTransferCountsAsAZeroNotAsAnError(t *testing.T) {
	subject, baseline := []float64{0, 0, 0, 0, 0, 5, 6}, []float64{5, 6, 5, 6, 5, 6, 5}
	for kind, interval := range map[string]intervalOf{"paired": RatioOfMedians, "unpaired": UnpairedRatio} {
		iv, ok, err := interval(subject, baseline, 0.95)
		if err != nil || !ok || iv.Median != 0 || iv.Low != 0 || iv.High <= 0 || iv.High > 1.2 {
			t.Errorf("%s: %+v, %v, %v", kind, iv, ok, err)
		}
	}
}

func TestHugeSamplesHaveNarrowIntervals(t *testing.T) {
	for _, n := range []int{999, 1000, 3000} {
		rng := rand.New(rand.NewPCG(13, uint64(n)))
		subject, baseline := make([]float64, n), make([]float64, n)
		noises["lognormal"](rng, subject, baseline)
		for kind, interval := range map[string]intervalOf{"paired": RatioOfMedians, "unpaired": UnpairedRatio} {
			iv, ok, err := interval(subject, baseline, 0.95)
			// The standard error of the median of so much noise, from theory.
			want := 2 * 1.96 * 0.05 * math.Sqrt(2) * math.Sqrt(math.Pi/2) / math.Sqrt(float64(n))
			if width := iv.High - iv.Low; err != nil || !ok || width < 0.7*want || width > 1.4*want {
				t.Errorf("%s, n = %d: %+v, %v, %v, want a width of about %.4f", kind, n, iv, ok, err, want)
			}
		}
	}
}

func FuzzRatios(f *testing.F) {
	f.Add([]byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0}, 0.95)
	f.Add([]byte{0x7f, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1}, 0.5)
	f.Add([]byte{}, 0.99)
	f.Fuzz(func(t *testing.T, raw []byte, level float64) {
		xs := floatsOf(raw[:min(len(raw), 8*40)])
		subject, baseline := xs[:len(xs)/2], xs[len(xs)/2:len(xs)/2*2]
		for _, interval := range []intervalOf{RatioOfMedians, UnpairedRatio} {
			iv, ok, err := interval(subject, baseline, level)
			if ok && (err != nil || !(iv.Low <= iv.Median && iv.Median <= iv.High) || math.IsInf(iv.High, 0) || !(iv.Level >= 0 && iv.Level <= level)) {
				t.Errorf("%v over %v at %v: %+v, %v", subject, baseline, level, iv, err)
			}
		}
	})
}

// positive makes two sides of positive values, as many as the shorter has.
func positive(a, b []uint32) (subject, baseline []float64) {
	for i := range min(len(a), len(b)) {
		subject, baseline = append(subject, float64(a[i])+1), append(baseline, float64(b[i])+1)
	}
	return subject, baseline
}
