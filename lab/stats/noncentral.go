package stats

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// detectableShift returns the smallest true difference, in standard errors,
// that a two-sided Student's t finds with probability power (level < power <
// 1). freedom is its degrees of freedom, level its significance.
func detectableShift(freedom, level, power float64) float64 {
	critical := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(1 - level/2)
	if math.IsInf(critical, 0) {
		return math.Inf(1)
	}
	found := noncentralT(freedom)
	low, high := 0.0, 1.0
	for found(critical, high) < power {
		low, high = high, 2*high
		if high > 1e9 {
			return math.Inf(1)
		}
	}
	for range 50 {
		if mid := (low + high) / 2; found(critical, mid) < power {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// noncentralT returns P(T > t) of the noncentral t distribution as a function
// of t and of its noncentrality: (Z + shift) / √(V/ν), averaged over the
// quantiles of V.
func noncentralT(freedom float64) func(t, shift float64) float64 {
	const points = 48
	at, weight := make([]float64, points), make([]float64, points)
	quad.Legendre{}.FixedLocations(at, weight, 0, 1)
	v := distuv.ChiSquared{K: freedom}
	for i, p := range at {
		at[i] = math.Sqrt(v.Quantile(p) / freedom)
	}
	return func(t, shift float64) float64 {
		sum := 0.0
		for i, scale := range at {
			sum += weight[i] * math.Erfc((t*scale-shift)/math.Sqrt2) / 2
		}
		return sum
	}
}
