package stats

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkAnalysis is what a report of 10 metrics in 50 comparisons of 20
// blocks asks for: 20,000 values. It is to stay well below 2 s on one core.
func BenchmarkAnalysis(b *testing.B) {
	rng := rand.New(rand.NewPCG(26, 0))
	subject, baseline := make([]float64, 20), make([]float64, 20)
	noises["block drift"](rng, subject, baseline)
	for b.Loop() {
		ps := make([]float64, 0, 500)
		for range 500 {
			if _, ok, err := RatioOfMedians(subject, baseline, 0.95); !ok || err != nil {
				b.Fatal(err)
			}
			test, _, _ := WilcoxonSignedRank(subject, baseline)
			if _, ok, err := DetectableRatio(subject, baseline, 0.05, 0.8); !ok || err != nil {
				b.Fatal(err)
			}
			ps = append(ps, test.P)
		}
		Holm(ps)
	}
}

// BenchmarkUnpairedAnalysis is the same for two runs.
func BenchmarkUnpairedAnalysis(b *testing.B) {
	rng := rand.New(rand.NewPCG(27, 0))
	subject, baseline := make([]float64, 20), make([]float64, 20)
	noises["lognormal"](rng, subject, baseline)
	for b.Loop() {
		ps := make([]float64, 0, 500)
		for range 500 {
			if _, ok, err := UnpairedRatio(subject, baseline, 0.95); !ok || err != nil {
				b.Fatal(err)
			}
			test, _, _ := MannWhitney(subject, baseline)
			if _, ok, err := DetectableUnpaired(subject, baseline, 0.05, 0.8); !ok || err != nil {
				b.Fatal(err)
			}
			ps = append(ps, test.P)
		}
		Holm(ps)
	}
}
