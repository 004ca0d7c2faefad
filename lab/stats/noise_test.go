package stats

import (
	"math"
	"math/rand/v2"
)

// noises are the ways in which trials vary, for simulations: each fills
// subject and baseline, whose true ratio is 1.
var noises = map[string]func(rng *rand.Rand, subject, baseline []float64){
	"lognormal": func(rng *rand.Rand, subject, baseline []float64) {
		fill(subject, baseline, func() float64 { return 1 }, func() float64 { return math.Exp(0.05 * rng.NormFloat64()) })
	},
	"wide lognormal": func(rng *rand.Rand, subject, baseline []float64) {
		fill(subject, baseline, func() float64 { return 1 }, func() float64 { return math.Exp(0.3 * rng.NormFloat64()) })
	},
	"block drift": func(rng *rand.Rand, subject, baseline []float64) {
		fill(subject, baseline, func() float64 { return math.Exp(0.2 * rng.NormFloat64()) },
			func() float64 { return math.Exp(0.03 * rng.NormFloat64()) })
	},
	"a tenth of outliers": func(rng *rand.Rand, subject, baseline []float64) {
		fill(subject, baseline, func() float64 { return 1 }, func() float64 {
			if rng.Float64() < 0.1 {
				return math.Exp(0.3 * rng.NormFloat64())
			}
			return math.Exp(0.03 * rng.NormFloat64())
		})
	},
	"a tenth at half speed": func(rng *rand.Rand, subject, baseline []float64) {
		fill(subject, baseline, func() float64 { return 1 }, func() float64 {
			x := math.Exp(0.03 * rng.NormFloat64())
			if rng.Float64() < 0.1 {
				x /= 2
			}
			return x
		})
	},
}

func fill(subject, baseline []float64, block, trial func() float64) {
	for i := range subject {
		drift := block()
		subject[i], baseline[i] = 1e9*drift*trial(), 1e9*drift*trial()
	}
}
