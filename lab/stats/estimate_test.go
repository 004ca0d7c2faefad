package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"

	"windtunnel/internal/must"
)

type estimateOf func(subject, baseline []float64, level float64) (Estimate, bool, error)

func TestIntervalExcludesNoDifferenceExactlyWhereTheTestFindsOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 0))
	found, ties, zeros := 0, 0, 0
	for range 3000 {
		n := 1 + rng.IntN(60)
		subject, baseline := make([]float64, n), make([]float64, n)
		coarse := rng.IntN(2) == 0 // whole numbers tie, and many pairs are equal
		shift := rng.Float64()
		for i := range n {
			if coarse {
				subject[i], baseline[i] = float64(2+rng.IntN(4))+math.Round(shift), float64(2+rng.IntN(4))
			} else {
				subject[i], baseline[i] = math.Exp(shift*0.4+0.3*rng.NormFloat64()), math.Exp(0.3*rng.NormFloat64())
			}
			if subject[i] == baseline[i] {
				zeros++
			}
		}
		if coarse {
			ties++
		}
		for _, level := range []float64{0.8, 0.95, 0.965, 0.99} {
			for name, c := range map[string]struct {
				of   estimateOf
				none float64
			}{"ratio": {Ratio, 1}, "difference": {Difference, 0}} {
				e, ok, err := c.of(subject, baseline, level)
				if err != nil || !ok || e.Low > e.Median || e.High < e.Median {
					t.Fatalf("%s of %d: %+v, %v, %v", name, n, e, ok, err)
				}
				if e.Level >= level && e.Excludes(c.none) != (e.P <= 1-level) {
					t.Errorf("%s of %v over %v at %v: %+v", name, subject, baseline, level, e)
				}
				if e.P <= 1-level {
					found++
				}
			}
		}
	}
	if found < 2000 || ties < 1000 || zeros < 5000 {
		t.Errorf("%d differences found, %d rounds with ties, %d equal pairs: the cases are not of all kinds", found, ties, zeros)
	}
}

// bruteForce counts all signs of untied ranks, and lists and sorts all Walsh
// averages.
func bruteForce(xs []float64, level float64) (median, low, high, p float64) {
	var averages []float64
	for i := range xs {
		for j := range i + 1 {
			averages = append(averages, xs[i]/2+xs[j]/2)
		}
	}
	slices.Sort(averages)
	all := len(averages)
	atMost := func(seen int) float64 {
		ways := 0
		for signs := range 1 << len(xs) {
			sum := 0
			for i := range xs {
				if signs>>i&1 == 1 {
					sum += i + 1
				}
			}
			if sum <= seen {
				ways++
			}
		}
		return min(1, 2*float64(ways)/math.Ldexp(1, len(xs)))
	}
	against := func(side func(float64) bool) int {
		n := 0
		for _, a := range averages {
			if !side(a) {
				n++
			}
		}
		return n
	}
	k := 1
	for atMost(k) <= 1-level {
		k++
	}
	seen := min(against(func(a float64) bool { return a > 0 }), against(func(a float64) bool { return a < 0 }))
	return (averages[(all-1)/2] + averages[all/2]) / 2, averages[k-1], averages[all-k], atMost(seen)
}

func TestTheEstimateEqualsACountOfEveryCase(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 0))
	for n := 6; n <= 11; n++ {
		for round := range 8 {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = rng.NormFloat64() + 0.5
				if round%2 == 0 {
					xs[i] = math.Round(2 * xs[i])
				}
			}
			e, ok, err := Difference(xs, make([]float64, n), 0.95)
			median, low, high, p := bruteForce(xs, 0.95)
			if err != nil || !ok || math.Abs(e.Median-median) > 1e-15 || e.Low != low || e.High != high || math.Abs(e.P-p) > 1e-12 {
				t.Errorf("%v: %+v, %v, %v, want %v [%v, %v], p %v", xs, e, ok, err, median, low, high, p)
			}
		}
	}
}

func TestTheLevelIsTheSmallestAttainableOneThatSuffices(t *testing.T) {
	// Critical values of the two-sided test at 0.05, as the tables have them.
	for n, want := range map[int]int{6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 12: 13, 15: 25, 20: 52, 25: 89, 30: 137, 40: 264, 50: 434} {
		if got := newSignedRanks(n).critical(0.05); got != want {
			t.Errorf("n = %d: critical value %d, the tables have %d", n, got, want)
		}
	}
	subject, baseline := []float64{9, 33, 20, 14, 26, 8, 11, 19}, []float64{10, 30, 20, 15, 25, 9, 10, 20}
	for n, level := range map[int]float64{1: 0, 2: 0.5, 3: 0.75, 4: 0.875, 5: 0.9375, 6: 0.96875, 7: 1 - 6.0/128, 8: 1 - 10.0/256} {
		e, ok, err := Ratio(subject[:n], baseline[:n], 0.95)
		if err != nil || !ok || math.Abs(e.Level-level) > 1e-12 || e.N != n {
			t.Errorf("n = %d: %+v, %v, %v, want level %v", n, e, ok, err, level)
		}
		if n < 6 && e.Level >= 0.95 {
			t.Errorf("n = %d: %+v is enough", n, e)
		}
	}
}

func TestPairsThatAllFallHaveTheSmallestP(t *testing.T) {
	e, ok, err := Ratio([]float64{9, 28, 19, 13, 23, 11}, []float64{10, 30, 20, 15, 25, 12}, 0.95)
	if err != nil || !ok || e.P != 1.0/32 || e.Floor != e.P || e.Effect != -1 || e.N != 6 {
		t.Errorf("the ratio is %+v (%v, %v), want p = 1/32 of 6 pairs, the smallest possible", e, ok, err)
	}
	if !nearly(e.Low, 13.0/15) || !nearly(e.High, 19.0/20) {
		t.Errorf("of six pairs the interval is the extremes: %+v", e)
	}
}

func TestExactAndApproximateTestsAgree(t *testing.T) {
	exact, normal := newSignedRanks(exactSignedRanks), signedRanks{n: exactSignedRanks}
	for seen := range exact.sums() / 2 {
		if a, b := exact.twoSided(seen), normal.twoSided(seen); math.Abs(a-b) > 0.004 || a < 0.1 && math.Abs(a-b) > 0.001 {
			t.Errorf("rank sum %d of %d pairs: exactly %v, by the approximation %v", seen, exactSignedRanks, a, b)
		}
	}
}

func TestRatioIsOfPairsAndInvertsWithItsSides(t *testing.T) {
	property := func(a, b [9]uint32, shift uint8, seed uint64) bool {
		subject, baseline := positive(a[:], b[:])
		x, _, _ := Ratio(subject, baseline, 0.95)
		y, _, _ := Ratio(baseline, subject, 0.95)
		if !(x.P == y.P && x.Effect == -y.Effect && nearly(x.Median, 1/y.Median) && nearly(x.Low, 1/y.High)) {
			return false
		}
		before := slices.Concat(subject, baseline)
		scaled, other := make([]float64, 9), make([]float64, 9)
		for i, from := range rand.New(rand.NewPCG(seed, 0)).Perm(9) {
			block := math.Ldexp(1, int(shift)-128+i) // another unit in every block
			scaled[i], other[i] = subject[from]*block, baseline[from]*block
		}
		z, _, _ := Ratio(scaled, other, 0.95)
		d, _, _ := DetectableRatio(subject, baseline, 0.05, 0.8)
		e, _, _ := DetectableRatio(scaled, other, 0.05, 0.8)
		return x == z && math.Abs(d-e) <= 1e-9*d && slices.Equal(before, slices.Concat(subject, baseline))
	}
	must.Succeed(t, quick.Check(property, nil))
}

func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(a) }

func TestRatioOfASystemWithItselfIsOne(t *testing.T) {
	xs := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	e, ok, err := Ratio(xs, xs, 0.95)
	if err != nil || !ok || e.Median != 1 || e.Low != 1 || e.High != 1 || e.P != 1 || e.Effect != 0 {
		t.Errorf("the ratio of equal values is %+v (%v, %v), want 1 with p = 1", e, ok, err)
	}
}

func TestALevelWithoutARatioHasADifferenceOrAnError(t *testing.T) {
	for name, c := range map[string]struct {
		subject, baseline []float64
		differs           bool
	}{
		"zero baseline":     {[]float64{1, 1}, []float64{1, 0}, true},
		"zero subject":      {[]float64{0, 1}, []float64{1, 1}, true},
		"negative baseline": {[]float64{1}, []float64{-1}, true},
		"negative subject":  {[]float64{-1}, []float64{1}, true},
		"NaN":               {[]float64{math.NaN()}, []float64{1}, false},
		"infinite baseline": {[]float64{1}, []float64{math.Inf(1)}, false},
		"lengths differ":    {[]float64{1}, []float64{1, 2}, false},
	} {
		if e, ok, err := Ratio(c.subject, c.baseline, 0.95); err == nil || ok || e != (Estimate{}) {
			t.Errorf("%s: ratio %+v, %v, no error", name, e, ok)
		}
		if _, ok, err := Difference(c.subject, c.baseline, 0.95); ok != c.differs || (err == nil) != c.differs {
			t.Errorf("%s: difference %v, %v", name, ok, err)
		}
	}
	for name, of := range map[string]estimateOf{"ratio": Ratio, "difference": Difference} {
		if _, _, err := of([]float64{1, math.NaN()}, []float64{1, 1}, 0.95); !errors.Is(err, ErrNotFinite) {
			t.Errorf("%s of NaN: %v does not say that it is not finite", name, err)
		}
		if _, ok, err := of([]float64{1}, []float64{1}, 1.5); ok || err == nil {
			t.Errorf("%s at a level of 1.5 was taken", name)
		}
		if _, ok, err := of(nil, nil, 0.95); ok || err != nil {
			t.Errorf("%s of nothing: ok %v, err %v", name, ok, err)
		}
	}
}

// The pairs share what their block does: a drift, or one of two levels.
func TestAnIntervalOfRatiosContainsTheTrueRatioAsOftenAsItsLevel(t *testing.T) {
	for name, noise := range noises {
		for _, n := range []int{6, 7, 10, 20, 40} {
			rounds := 1500
			if n == 6 {
				rounds = 5000 // its only level is 0.969, near the bound
			}
			rng := rand.New(rand.NewPCG(11, uint64(n)))
			subject, baseline := make([]float64, n), make([]float64, n)
			held := 0
			for range rounds {
				noise(rng, subject, baseline)
				e, ok, err := Ratio(subject, baseline, Level)
				if !ok || err != nil || e.Level < Level {
					t.Fatalf("the ratio is %+v (%v, %v), want a level of 95 %% or more", e, ok, err)
				}
				if !e.Excludes(1) {
					held++
				}
			}
			if got := float64(held) / float64(rounds); got < 0.93 || got > 0.97+0.0035 { // and the simulation's own error
				t.Errorf("%s, n = %d: holds the true ratio in %.4f of rounds", name, n, got)
			}
		}
	}
}

func TestHugeSamplesHaveNarrowIntervals(t *testing.T) {
	for _, n := range []int{999, 3000} {
		rng := rand.New(rand.NewPCG(13, uint64(n)))
		subject, baseline := make([]float64, n), make([]float64, n)
		noises["lognormal"](rng, subject, baseline)
		e, ok, err := Ratio(subject, baseline, 0.95)
		// The standard error of the estimate for normal noise, from theory.
		want := 2 * 1.96 * 0.05 * math.Sqrt2 / math.Sqrt(float64(n)*rankEfficiency)
		if width := e.High - e.Low; err != nil || !ok || width < 0.9*want || width > 1.1*want {
			t.Errorf("n = %d: %+v, %v, %v, want a width of about %.4f", n, e, ok, err, want)
		}
	}
}

// positive makes two sides of positive values, as many as the shorter has.
func positive(a, b []uint32) (subject, baseline []float64) {
	for i := range min(len(a), len(b)) {
		subject, baseline = append(subject, float64(a[i])+1), append(baseline, float64(b[i])+1)
	}
	return subject, baseline
}
