package stats

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkAnalysis computes the statistics of a large report: 50 comparisons of
// 10 metrics over 20 blocks. The target is 2 s on one core.
func BenchmarkAnalysis(b *testing.B) {
	rng := rand.New(rand.NewPCG(26, 0))
	subject, baseline := make([]float64, 20), make([]float64, 20)
	noises["drift"](rng, subject, baseline)
	for b.Loop() {
		ps := make([]float64, 0, 500)
		for range 500 {
			e, ok, err := Ratio(subject, baseline, 0.95)
			if !ok || err != nil {
				b.Fatal(err)
			}
			if _, ok, err := DetectableRatio(subject, baseline, 0.05, 0.8); !ok || err != nil {
				b.Fatal(err)
			}
			ps = append(ps, e.P)
		}
		Holm(ps)
	}
}
