package stats

import (
	"math"
	"math/rand/v2"
)

// noises are the ways in which trials vary, for simulations: each fills
// subject and baseline, whose true ratio is 1, in order of block.
var noises = map[string]func(rng *rand.Rand, subject, baseline []float64){
	"lognormal": func(rng *rand.Rand, subject, baseline []float64) {
		fill(subject, baseline, constant, func() float64 { return math.Exp(0.05 * rng.NormFloat64()) })
	},
	"skewed": func(rng *rand.Rand, subject, baseline []float64) {
		fill(subject, baseline, constant, func() float64 { return math.Exp(-0.05 * rng.ExpFloat64()) })
	},
	"a tenth at half speed": func(rng *rand.Rand, subject, baseline []float64) {
		fill(subject, baseline, constant, func() float64 {
			x := math.Exp(0.03 * rng.NormFloat64())
			if rng.Float64() < 0.1 {
				x /= 2
			}
			return x
		})
	},
	// A block has one of two levels, which one trial in ten leaves.
	"two levels": func(rng *rand.Rand, subject, baseline []float64) {
		block := func() float64 { return []float64{8.3, 13.6}[rng.IntN(2)] }
		fill(subject, baseline, block, func() float64 {
			x := math.Exp(0.03 * rng.NormFloat64())
			if rng.Float64() < 0.1 {
				x *= 8.3 / 13.6
			}
			return x
		})
	},
	"drift": func(rng *rand.Rand, subject, baseline []float64) {
		level := 1.0
		block := func() float64 {
			level *= math.Exp(0.01 + 0.08*rng.NormFloat64())
			return level
		}
		fill(subject, baseline, block, func() float64 { return math.Exp(0.03 * rng.NormFloat64()) })
	},
}

func constant() float64 { return 1 }

func fill(subject, baseline []float64, block, trial func() float64) {
	for i := range subject {
		level := block()
		subject[i], baseline[i] = 1e9*level*trial(), 1e9*level*trial()
	}
}
