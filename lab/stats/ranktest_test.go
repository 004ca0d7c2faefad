package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
)

type rankTest func(subject, baseline []float64) (Test, bool, error)

var rankTests = map[string]rankTest{"signed ranks": WilcoxonSignedRank, "rank sums": MannWhitney}

func TestSignedRanksOfPairsThatAllFallHaveTheSmallestP(t *testing.T) {
	baseline := []float64{10, 30, 20, 15, 25, 12}
	subject := []float64{9, 28, 19, 13, 23, 11}
	got, ok, err := WilcoxonSignedRank(subject, baseline)
	if want := (Test{P: 1.0 / 32, Effect: -1, N: 6, Floor: 1.0 / 32}); err != nil || !ok || got != want {
		t.Errorf("got %+v, %v, %v, want %+v", got, ok, err, want)
	}
}

func TestRankSumsOfSidesThatDoNotOverlapHaveTheSmallestP(t *testing.T) {
	got, ok, err := MannWhitney([]float64{5, 6, 7, 8}, []float64{1, 2, 3})
	if want := (Test{P: 2.0 / 35, Effect: 1, N: 7, Floor: 2.0 / 35}); err != nil || !ok || got != want {
		t.Errorf("got %+v, %v, %v, want %+v", got, ok, err, want)
	}
}

func TestSignedRanksAreOfRatiosNotOfDifferences(t *testing.T) {
	// By differences 100 outweighs the rest, by ratios it is the smallest.
	subject, baseline := []float64{1100, 10, 9, 8}, []float64{1000, 20, 20, 20}
	got, _, err := WilcoxonSignedRank(subject, baseline)
	if want := (1.0 - 9) / 10; err != nil || got.Effect != want {
		t.Errorf("effect %v, %v, want %v", got.Effect, err, want)
	}
	// With a zero there is no logarithm: by differences 100 is the largest.
	subject[3] = 0
	got, _, err = WilcoxonSignedRank(subject, baseline)
	if want := (4.0 - 6) / 10; err != nil || got.Effect != want {
		t.Errorf("with a zero: effect %v, %v, want %v", got.Effect, err, want)
	}
}

func TestSidesThatAreTheSameShowNoDifference(t *testing.T) {
	xs := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	for name, test := range rankTests {
		got, ok, err := test(xs, xs)
		if err != nil || !ok || got.P != 1 || got.Effect != 0 || got.Floor >= 0.05 {
			t.Errorf("%s: %+v, %v, %v", name, got, ok, err)
		}
	}
	same := make([]float64, 80)
	if got, ok, err := MannWhitney(same, same); err != nil || !ok || got.P != 1 || got.Effect != 0 {
		t.Errorf("80 equal values a side: %+v, %v, %v", got, ok, err)
	}
}

func TestFloorIsThePOfTheMostExtremeOutcome(t *testing.T) {
	for _, n := range []int{1, 2, 5, 6, 10, 20, 45, 50, 51, 70} {
		low, high := make([]float64, n), make([]float64, n)
		for i := range low {
			low[i], high[i] = 100+float64(i), 300+7*float64(i)
		}
		for name, test := range rankTests {
			got, ok, err := test(high, low)
			if err != nil || !ok || math.Abs(got.P-got.Floor) > 1e-12*got.P+1e-300 || got.Effect != 1 || got.P <= 0 {
				t.Errorf("%s, n = %d: %+v, %v, %v", name, n, got, ok, err)
			}
		}
	}
}

func TestExactAndApproximateTestsMeet(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 0))
	for range 50 {
		n := 40 + rng.IntN(11)
		subject, baseline := make([]float64, n), make([]float64, n)
		noises["lognormal"](rng, subject, baseline)
		exact, _, _ := WilcoxonSignedRank(subject, baseline)
		if p := signedRankNormal(n, 0, exact.Effect); math.Abs(p-exact.P) > 0.02 {
			t.Errorf("signed ranks of %d: exactly %v, by the approximation %v", n, exact.P, p)
		}
		half := min(n, 25)
		whitney, _, _ := MannWhitney(subject[:half], baseline[:half])
		u := (whitney.Effect + 1) / 2 * float64(half*half)
		if p := rankSumNormal(half, half, 0, u); math.Abs(p-whitney.P) > 0.02 {
			t.Errorf("rank sums of %d: exactly %v, by the approximation %v", half, whitney.P, p)
		}
	}
}

func TestRankTestsFindADifferenceThatIsNotThereAsOftenAsTheySay(t *testing.T) {
	for name, test := range rankTests {
		rng := rand.New(rand.NewPCG(15, 0))
		subject, baseline := make([]float64, 10), make([]float64, 10)
		const rounds = 4000
		found := 0
		for range rounds {
			noises["a tenth of outliers"](rng, subject, baseline)
			if got, _, _ := test(subject, baseline); got.P <= 0.05 {
				found++
			}
		}
		// The exact tests stand at 0.049 and 0.043 for ten values a side.
		if got := float64(found) / rounds; got < 0.03 || got > 0.06 {
			t.Errorf("%s: finds a difference in %.3f of rounds", name, got)
		}
	}
}

func TestRatiosAndTestsDoNotDependOnTheUnit(t *testing.T) {
	property := func(a, b [12]uint32, shift uint8) bool {
		subject, baseline := positive(a[:], b[:])
		factor := math.Ldexp(1, int(shift)-128)
		scaled := [2][]float64{slices.Clone(subject), slices.Clone(baseline)}
		for _, side := range scaled {
			for i := range side {
				side[i] *= factor
			}
		}
		for _, test := range rankTests {
			x, _, _ := test(subject, baseline)
			y, _, _ := test(scaled[0], scaled[1])
			if x != y {
				return false
			}
		}
		for _, interval := range []intervalOf{RatioOfMedians, UnpairedRatio} {
			x, _, _ := interval(subject, baseline, 0.95)
			y, _, _ := interval(scaled[0], scaled[1], 0.95)
			if !alike(x, y) {
				return false
			}
		}
		x, _, _ := DetectableRatio(subject, baseline, 0.05, 0.8)
		y, _, _ := DetectableRatio(scaled[0], scaled[1], 0.05, 0.8)
		return x == y
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestSwappingTheSidesInvertsTheRatioAndNegatesTheEffect(t *testing.T) {
	property := func(a, b [9]uint32) bool {
		subject, baseline := positive(a[:], b[:])
		for _, test := range rankTests {
			x, _, _ := test(subject, baseline)
			y, _, _ := test(baseline, subject)
			if x.P != y.P || math.Abs(x.Effect+y.Effect) > 1e-12 || x.Floor != y.Floor {
				return false
			}
		}
		for _, interval := range []intervalOf{RatioOfMedians, UnpairedRatio} {
			x, _, _ := interval(subject, baseline, 0.95)
			y, _, _ := interval(baseline, subject, 0.95)
			y.Median, y.Low, y.High = 1/y.Median, 1/y.High, 1/y.Low
			if !alike(x, y) {
				return false
			}
		}
		return true
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestResultsDoNotDependOnTheOrderOfBlocksNorChangeTheirInput(t *testing.T) {
	property := func(a, b [11]uint32, seed uint64) bool {
		subject, baseline := positive(a[:], b[:])
		order := rand.New(rand.NewPCG(seed, 0)).Perm(len(subject))
		s, l := make([]float64, len(order)), make([]float64, len(order))
		for i, from := range order {
			s[i], l[i] = subject[from], baseline[from]
		}
		before := slices.Concat(s, l)
		for _, test := range rankTests {
			x, _, _ := test(subject, baseline)
			y, _, _ := test(s, l)
			if x != y {
				return false
			}
		}
		for _, interval := range []intervalOf{RatioOfMedians, UnpairedRatio} {
			x, _, _ := interval(subject, baseline, 0.95)
			y, _, _ := interval(s, l, 0.95)
			if x != y {
				return false
			}
		}
		x, _, _ := DetectableRatio(subject, baseline, 0.05, 0.8)
		y, _, _ := DetectableRatio(s, l, 0.05, 0.8)
		return math.Abs(x-y) <= 1e-9*x && slices.Equal(before, slices.Concat(s, l))
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestRankTestsRefuseWhatIsNotANumber(t *testing.T) {
	for name, test := range rankTests {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			for _, sides := range [][2][]float64{{{1, bad}, {1, 2}}, {{1, 2}, {1, bad}}} {
				if got, ok, err := test(sides[0], sides[1]); !errors.Is(err, ErrNotFinite) || ok || got != (Test{}) {
					t.Errorf("%s with %v: %+v, %v, %v", name, bad, got, ok, err)
				}
			}
		}
		if _, ok, err := test(nil, nil); ok || err != nil {
			t.Errorf("%s of nothing: ok %v, err %v", name, ok, err)
		}
	}
	if _, ok, err := WilcoxonSignedRank([]float64{1}, []float64{1, 2}); ok || err == nil {
		t.Error("sides of different length were taken as pairs")
	}
	if _, ok, err := MannWhitney([]float64{1}, nil); ok || err != nil {
		t.Errorf("an empty side: ok %v, err %v", ok, err)
	}
}

// alike compares to 12 digits, more than which division does not keep.
func alike(a, b Interval) bool {
	same := func(x, y float64) bool { return math.Abs(x-y) <= 1e-12*math.Abs(x) }
	return same(a.Median, b.Median) && same(a.Low, b.Low) && same(a.High, b.High) && a.N == b.N && a.Level == b.Level
}
