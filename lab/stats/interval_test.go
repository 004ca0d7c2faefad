package stats

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"

	"golang.org/x/perf/benchmath"

	"windtunnel/internal/must"
)

// exactCoverage computes 1 − 2·Σ_{i<k} C(n,i)/2ⁿ in whole numbers.
func exactCoverage(n, k int) float64 {
	below := new(big.Int)
	for i := range k {
		below.Add(below, new(big.Int).Binomial(int64(n), int64(i)))
	}
	below.Lsh(below, 1)
	whole := new(big.Int).Lsh(big.NewInt(1), uint(n))
	f, _ := new(big.Rat).SetFrac(new(big.Int).Sub(whole, below), whole).Float64()
	return f
}

func TestCoverageAgreesWithWholeNumberBinomialSums(t *testing.T) {
	for n := 1; n <= 120; n++ {
		for k := 1; k <= (n+1)/2; k++ {
			if got, want := coverage(n, k), exactCoverage(n, k); math.Abs(got-want) > 1e-12 {
				t.Fatalf("coverage(%d, %d) = %v, exactly %v", n, k, got, want)
			}
		}
	}
}

func TestRankIsTheLargestThatKeepsTheLevel(t *testing.T) {
	for least, level := range map[int]float64{6: 0.95, 8: 0.99} {
		for n := least; n <= 120; n++ {
			k := rank(n, level)
			if exactCoverage(n, k) < level {
				t.Errorf("n = %d: rank %d holds only %v", n, k, exactCoverage(n, k))
			}
			if k < (n+1)/2 && exactCoverage(n, k+1) >= level {
				t.Errorf("n = %d: rank %d would hold %v too", n, k+1, exactCoverage(n, k+1))
			}
		}
	}
}

func TestMedianIntervalOfTenValues(t *testing.T) {
	iv, ok, err := MedianInterval([]float64{7, 3, 9, 1, 5, 10, 2, 8, 6, 4}, 0.95)
	want := Interval{Median: 5.5, Low: 2, High: 9, N: 10, Level: 1 - 2*11.0/1024}
	if err != nil || !ok || !near(iv, want) {
		t.Errorf("got %+v, %v, %v, want %+v", iv, ok, err, want)
	}
}

func TestFewerThanSixValuesGiveTheExtremesAndTheirConfidence(t *testing.T) {
	for n, level := range map[int]float64{1: 0, 2: 0.5, 3: 0.75, 4: 0.875, 5: 0.9375, 6: 0.96875} {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(i + 1)
		}
		iv, ok, err := MedianInterval(xs, 0.95)
		want := Interval{Median: float64(n+1) / 2, Low: 1, High: float64(n), N: n, Level: level}
		if err != nil || !ok || !near(iv, want) {
			t.Errorf("n = %d: got %+v, %v, %v, want %+v", n, iv, ok, err, want)
		}
		if (iv.Level >= 0.95) != (n >= 6) {
			t.Errorf("n = %d: level %v", n, iv.Level)
		}
	}
}

func TestMinimumTrials(t *testing.T) {
	for level, want := range map[float64]int{0.5: 2, 0.9: 5, 0.95: 6, 0.99: 8, 0.999: 11} {
		if got := MinimumTrials(level); got != want {
			t.Errorf("MinimumTrials(%v) = %d, want %d", level, got, want)
		}
	}
}

// benchmath takes the same order statistics except where it can shorten one
// end by a rank and still hold the level.
func TestIntervalAgreesWithBenchmath(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	same := 0
	for n := 6; n <= 30; n++ {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = rng.NormFloat64()
		}
		iv, _, err := MedianInterval(xs, 0.95)
		must.Succeed(t, err)
		ref := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(xs), &benchmath.DefaultThresholds), 0.95)
		if math.Abs(ref.Center-iv.Median) > 1e-12 || ref.Lo < iv.Low || ref.Hi > iv.High || (ref.Lo != iv.Low && ref.Hi != iv.High) {
			t.Errorf("n = %d: %+v, benchmath has %+v", n, iv, ref)
		}
		if ref.Lo == iv.Low && ref.Hi == iv.High {
			same++
			if math.Abs(ref.Confidence-iv.Level) > 1e-9 {
				t.Errorf("n = %d: level %v, benchmath has %v", n, iv.Level, ref.Confidence)
			}
		}
	}
	if same < 8 {
		t.Errorf("only %d of 25 sizes agree with benchmath at both ends", same)
	}
}

func TestAnIntervalContainsTheTrueMedianAsOftenAsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{3, 6, 10, 25} {
		const rounds = 20000
		held, level := 0, 0.0
		for range rounds {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = rng.ExpFloat64() // skewed; its median is ln 2
			}
			iv, _, _ := MedianInterval(xs, 0.95)
			level = iv.Level
			if !iv.Excludes(math.Ln2) {
				held++
			}
		}
		if got := float64(held) / rounds; math.Abs(got-level) > 0.008 {
			t.Errorf("n = %d: holds the median in %.3f of rounds, says %.3f", n, got, level)
		}
	}
}

func TestIntervalOfNegatedValuesIsTheNegatedInterval(t *testing.T) {
	property := func(raw []float64) bool {
		xs := tame(raw)
		iv, ok, err := MedianInterval(xs, 0.95)
		if err != nil || !ok {
			return len(xs) == 0
		}
		for i := range xs {
			xs[i] = -xs[i]
		}
		neg, _, _ := MedianInterval(xs, 0.95)
		return neg.Low == -iv.High && neg.High == -iv.Low && neg.Median == -iv.Median &&
			iv.Low <= iv.Median && iv.Median <= iv.High
	}
	must.Succeed(t, quick.Check(property, nil))
}

func TestIntervalDoesNotDependOnOrderNorChangeItsInput(t *testing.T) {
	property := func(raw []float64, seed uint64) bool {
		xs := tame(raw)
		before := slices.Clone(xs)
		a, _, _ := MedianInterval(xs, 0.95)
		if !slices.Equal(xs, before) {
			return false
		}
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(xs), func(i, j int) { xs[i], xs[j] = xs[j], xs[i] })
		b, _, _ := MedianInterval(xs, 0.95)
		return a == b
	}
	must.Succeed(t, quick.Check(property, nil))
}

func TestAnIntervalOfNaNOrAnImpossibleLevelIsRefused(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if iv, ok, err := MedianInterval([]float64{1, bad, 3}, 0.95); !errors.Is(err, ErrNotFinite) || ok || iv != (Interval{}) {
			t.Errorf("with %v: %+v, %v, %v", bad, iv, ok, err)
		}
	}
	for _, level := range []float64{0, 1, -1, 2, math.NaN()} {
		if _, ok, err := MedianInterval([]float64{1, 2}, level); err == nil || ok {
			t.Errorf("level %v was taken", level)
		}
	}
	if _, ok, err := MedianInterval(nil, 0.95); ok || err != nil {
		t.Errorf("no values: ok %v, err %v", ok, err)
	}
}

func FuzzMedianInterval(f *testing.F) {
	f.Add([]byte{1, 2, 3}, 0.95)
	f.Add([]byte{}, 0.5)
	f.Add([]byte{0xff, 0xf0, 0, 0, 0, 0, 0, 0, 0x7f, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0.99)
	f.Fuzz(func(t *testing.T, raw []byte, level float64) {
		xs := floatsOf(raw)
		iv, ok, err := MedianInterval(xs, level)
		if ok && (err != nil || !(iv.Low <= iv.Median && iv.Median <= iv.High) || iv.N != len(xs) || !(iv.Level >= 0 && iv.Level <= 1)) {
			t.Errorf("%v at %v: %+v, %v", xs, level, iv, err)
		}
	})
}

func near(a, b Interval) bool {
	return a.Median == b.Median && a.Low == b.Low && a.High == b.High && a.N == b.N && math.Abs(a.Level-b.Level) < 1e-12
}

// tame drops what quick.Check draws beyond the finite numbers.
func tame(xs []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(xs), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}

// floatsOf reads eight bytes a number, so that fuzzing meets NaN, infinities
// and denormals.
func floatsOf(raw []byte) []float64 {
	var xs []float64
	for ; len(raw) >= 8; raw = raw[8:] {
		var bits uint64
		for _, b := range raw[:8] {
			bits = bits<<8 | uint64(b)
		}
		xs = append(xs, math.Float64frombits(bits))
	}
	return xs
}
