package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"windtunnel/internal/must"
)

// blocksOf returns the comparisons of several subjects with one baseline in n
// blocks, in two metrics that depend on each other. noise returns the logarithm of
// one figure. The first subject's true ratio is exp(shift), that of the others 1.
func blocksOf(n, subjects int, shift float64, noise func() float64) [][]float64 {
	rows := make([][]float64, 2*subjects)
	for range n {
		drift, base := noise(), [2]float64{}
		base[0] = noise()
		base[1] = 0.8*base[0] + 0.6*noise()
		for s := range subjects {
			first := noise()
			second := 0.8*first + 0.6*noise()
			if s == 0 {
				first, second = first+shift, second+shift
			}
			rows[2*s] = append(rows[2*s], drift+first-(drift+base[0]))
			rows[2*s+1] = append(rows[2*s+1], second-base[1])
		}
	}
	return rows
}

func noisesBy(rng *rand.Rand) map[string]func() float64 {
	return map[string]func() float64{
		"normal": func() float64 { return 0.05 * rng.NormFloat64() },
		"skewed": func() float64 { return -0.05 * rng.ExpFloat64() },
		"two levels": func() float64 {
			if rng.Float64() < 0.2 {
				return -0.5 + 0.02*rng.NormFloat64()
			}
			return 0.02 * rng.NormFloat64()
		},
	}
}

// Each run compares 16 times with one baseline, and all systems are equal. A run
// with a difference is a false alarm.
func TestAFamilyOfEqualsRarelyShowsADifference(t *testing.T) {
	must.Long(t)
	rng := rand.New(rand.NewPCG(12, 11))
	const runs = 1000
	for name, noise := range noisesBy(rng) {
		for _, n := range []int{6, 8, 10, 12} {
			alarmed := 0
			for range runs {
				for _, p := range Family(blocksOf(n, 8, 0, noise)) {
					if p <= 0.05 {
						alarmed++
						break
					}
				}
			}
			t.Logf("%s, %d blocks: %.1f %% of the runs", name, n, 100*float64(alarmed)/runs)
			if share := float64(alarmed) / runs; share > 0.09 {
				t.Errorf("%s noise, %d blocks: %.1f %% of the runs have a false alarm, want 9 %% at most", name, n, 100*share)
			}
		}
	}
}

// Of 16 comparisons 14 are of equal systems, and 2 show half the throughput. These 2
// have the smallest p that the number of blocks allows.
func TestAnOverwhelmingDifferenceIsConfirmedInALargeFamily(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	for _, n := range []int{6, 8, 9, 10, 12, 13} {
		for range 20 {
			got := Family(blocksOf(n, 8, math.Log(0.49), func() float64 { return 0.02 * rng.NormFloat64() }))
			if want := math.Ldexp(1, 1-n); got[0] != want || got[1] != want {
				t.Errorf("%d blocks: corrected p %v and %v, want %v", n, got[0], got[1], want)
			}
		}
	}
	if got := Family(blocksOf(30, 8, math.Log(0.49), func() float64 { return 0.02 * rng.NormFloat64() })); got[0] > 0.001 {
		t.Errorf("30 blocks: %v", got[0])
	}
}

// One block with a larger difference in the same direction does not hide a certain
// difference.
func TestASlowBlockDoesNotHideADifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 14))
	for _, slower := range []float64{0, 0.36, 0.70} {
		found := 0
		for range 100 {
			rows := blocksOf(10, 8, -0.1, func() float64 { return 0.02 * rng.NormFloat64() })
			rows[0][3] -= slower
			if Family(rows)[0] <= 0.05 {
				found++
			}
		}
		if found < 95 {
			t.Errorf("one block slower by a further %.2f: found in %d of 100 runs", slower, found)
		}
	}
}

// For one comparison, Family is the permutation test without a correction.
func TestAFamilyOfOneIsItsOwnTest(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4, 5, 6}, 2.0 / 64},
		{[]float64{-1, 2, 3, 4, 5, 6}, 4.0 / 64},
		{[]float64{-1, 2, 3, 4, 5, 6, math.NaN()}, 4.0 / 64},
		{[]float64{1, 1, 1, 1, 1, 1}, 2.0 / 64},
		{[]float64{0, 0, 0, 0, 0, 0}, 1},
		{[]float64{1, -1, 1, -1, 1, -1}, 1},
	} {
		if got := Family([][]float64{c.xs}); len(got) != 1 || math.Abs(got[0]-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.xs, got, c.want)
		}
	}
	if got := Family(nil); len(got) != 0 {
		t.Errorf("no comparison: %v", got)
	}
}

// A comparison never has a smaller corrected p than one with a larger t.
func TestACorrectedFamilyKeepsTheRanking(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 13))
	for range 50 {
		rows := blocksOf(10, 4, 0.1, noisesBy(rng)["normal"])
		got := Family(rows)
		signs := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
		for i := range rows {
			for j := range rows {
				if newDiffering(rows[i]).t(signs) > newDiffering(rows[j]).t(signs) && got[i] > got[j] {
					t.Fatalf("%v: comparison %d has %v, %d with a smaller t %v", rows, i, got[i], j, got[j])
				}
			}
		}
	}
}
