package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"

	"windtunnel/internal/must"
)

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
	must.Succeed(t, quick.Check(property, nil))
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
	must.Succeed(t, quick.Check(property, nil))
}

func TestHolmLeavesOutTestsThatCouldNotBeMade(t *testing.T) {
	got := Holm([]float64{0.02, math.NaN(), 0.5})
	if got[0] != 0.04 || !math.IsNaN(got[1]) || got[2] != 0.5 {
		t.Errorf("got %v, want 0.04, NaN, 0.5", got)
	}
}
