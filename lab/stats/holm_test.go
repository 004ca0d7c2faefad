package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
)

func TestHolmMultipliesTheSmallestByAllAndNeverFalls(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, 0.03, 0.005})
	want := []float64{0.03, 0.06, 0.06, 0.02}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestHolmIsMonotoneAndBetweenItsInputAndBonferroni(t *testing.T) {
	property := func(raw []uint16) bool {
		ps := make([]float64, len(raw))
		for i, r := range raw {
			ps[i] = float64(r) / math.MaxUint16
		}
		before := slices.Clone(ps)
		adjusted := Holm(ps)
		for i := range ps {
			if adjusted[i] < ps[i] || adjusted[i] > min(1, ps[i]*float64(len(ps)))+1e-15 {
				return false
			}
			for j := range ps {
				if ps[i] < ps[j] && adjusted[i] > adjusted[j] || ps[i] == ps[j] && adjusted[i] != adjusted[j] {
					return false
				}
			}
		}
		return slices.Equal(before, ps)
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestHolmDoesNotDependOnOrder(t *testing.T) {
	property := func(raw []uint16, seed uint64) bool {
		ps := make([]float64, len(raw))
		for i, r := range raw {
			ps[i] = float64(r) / math.MaxUint16
		}
		adjusted := Holm(ps)
		order := rand.New(rand.NewPCG(seed, 0)).Perm(len(ps))
		shuffled := make([]float64, len(ps))
		for i, from := range order {
			shuffled[i] = ps[from]
		}
		for i, got := range Holm(shuffled) {
			if got != adjusted[order[i]] {
				return false
			}
		}
		return true
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestHolmLeavesOutTestsThatCouldNotBeMade(t *testing.T) {
	got := Holm([]float64{0.02, math.NaN(), 0.5})
	if got[0] != 0.04 || !math.IsNaN(got[1]) || got[2] != 0.5 {
		t.Errorf("got %v, want 0.04, NaN, 0.5", got)
	}
}

func TestHolmKeepsFalseFindingsOfAFamilyBelowTheLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 0))
	const rounds = 5000
	families := 0
	for range rounds {
		ps := make([]float64, 12)
		for i := range ps {
			ps[i] = rng.Float64()
		}
		if slices.Min(Holm(ps)) <= 0.05 {
			families++
		}
	}
	if got := float64(families) / rounds; got < 0.035 || got > 0.06 {
		t.Errorf("%.3f of families of true nulls have a finding, want about 0.049", got)
	}
}
