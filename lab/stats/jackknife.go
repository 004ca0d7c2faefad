package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Jackknife is the error of an estimate from n blocks, by the estimates without one block each.
type Jackknife struct {
	error float64 // standard error
	t     distuv.StudentsT
}

// NewJackknife returns the error of an estimate. without has the estimates without each block, at least 2.
//
// Source: Tukey 1958; Miller 1974, The Jackknife – A Review.
func NewJackknife(without []float64) Jackknife {
	n := float64(len(without))
	return Jackknife{(n - 1) * stat.StdDev(without, nil) / math.Sqrt(n), distuv.StudentsT{Sigma: 1, Nu: n - 1}}
}

// Half returns half the width of the interval at level.
func (j Jackknife) Half(level float64) float64 { return j.t.Quantile((1+level)/2) * j.error }

// P returns the two-sided p-value of the hypothesis that the estimated value is 0.
func (j Jackknife) P(estimate float64) float64 {
	switch {
	case estimate == 0:
		return 1
	case j.error == 0:
		return 0
	}
	return 2 * j.t.Survival(math.Abs(estimate)/j.error)
}

// WidenedRatio widens the interval of a ratio whose values share the error of a fit, to at least the interval of the
// jackknife. without has the ratios without each block, from a fit without that block. shared is the p-value of the
// jackknife; P becomes at least as large.
func (e Estimate) WidenedRatio(without []float64, level float64) (widened Estimate, shared float64) {
	logs := make([]float64, len(without))
	for i, r := range without {
		logs[i] = math.Log(r)
	}
	j, log := NewJackknife(logs), math.Log(e.Median)
	shared = j.P(log)
	e.Low, e.High, e.P = min(e.Low, ratioOf(log-j.Half(level))), max(e.High, ratioOf(log+j.Half(level))), max(e.P, shared)
	return e, shared
}

// WidenedDifference is WidenedRatio for a difference.
func (e Estimate) WidenedDifference(without []float64, level float64) (widened Estimate, shared float64) {
	j := NewJackknife(without)
	shared = j.P(e.Median)
	e.Low, e.High, e.P = min(e.Low, e.Median-j.Half(level)), max(e.High, e.Median+j.Half(level)), max(e.P, shared)
	return e, shared
}
