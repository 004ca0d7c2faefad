package stats

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// scaledMoments returns mean and standard deviation of xs, both divided by the
// largest magnitude of xs. Their ratio stays the same, and neither sum
// overflows.
func scaledMoments(xs []float64) (mean, deviation float64) {
	largest := 0.0
	for _, x := range xs {
		largest = math.Max(largest, math.Abs(x))
	}
	if largest == 0 {
		return 0, 0
	}
	scaled := make([]float64, len(xs))
	copy(scaled, xs)
	for i := range scaled {
		scaled[i] /= largest
	}
	if floats.Min(scaled) == floats.Max(scaled) {
		return scaled[0], 0
	}
	return stat.MeanStdDev(scaled, nil)
}
