package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Jackknife has the standard error of an estimate. It is computed from leave-one-out estimates: each of them repeats the
// estimate without one block of the data.
type Jackknife struct {
	StandardError float64
	t             distuv.StudentsT
}

// NewJackknife computes the standard error. leaveOneOut has at least 2 estimates.
//
// Source: Tukey 1958; Miller 1974, The Jackknife – A Review.
func NewJackknife(leaveOneOut []float64) Jackknife {
	n := float64(len(leaveOneOut))
	return Jackknife{(n - 1) * stat.StdDev(leaveOneOut, nil) / math.Sqrt(n), distuv.StudentsT{Sigma: 1, Nu: n - 1}}
}

// Half returns half the width of the confidence interval at level.
func (j Jackknife) Half(level float64) float64 { return j.t.Quantile((1+level)/2) * j.StandardError }

// P returns the two-sided p-value of the hypothesis that the estimated value is 0.
func (j Jackknife) P(estimate float64) float64 {
	switch {
	case estimate == 0:
		return 1
	case j.StandardError == 0:
		return 0
	}
	return 2 * j.t.Survival(math.Abs(estimate)/j.StandardError)
}

// WidenedRatio widens the interval of the ratio e so that it contains the jackknife's interval. It returns the widened
// estimate and the jackknife's p-value p. widened.P is the larger of e.P and p. Use WidenedRatio if one regression has
// adjusted all values, because they then share its error. Each ratio in leaveOneOut
// omits one block, and must be computed after a regression that omits the same block.
func (e Estimate) WidenedRatio(leaveOneOut []float64, level float64) (widened Estimate, p float64) {
	logs := make([]float64, len(leaveOneOut))
	for i, r := range leaveOneOut {
		logs[i] = math.Log(r)
	}
	j, log := NewJackknife(logs), math.Log(e.Median)
	p = j.P(log)
	e.Low, e.High, e.P = min(e.Low, ratioOf(log-j.Half(level))), max(e.High, ratioOf(log+j.Half(level))), max(e.P, p)
	return e, p
}

// WidenedDifference does the same as WidenedRatio if e is a difference.
func (e Estimate) WidenedDifference(leaveOneOut []float64, level float64) (widened Estimate, p float64) {
	j := NewJackknife(leaveOneOut)
	p = j.P(e.Median)
	e.Low, e.High, e.P = min(e.Low, e.Median-j.Half(level)), max(e.High, e.Median+j.Half(level)), max(e.P, p)
	return e, p
}
