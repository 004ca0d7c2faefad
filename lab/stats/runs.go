package stats

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Spread is how much runs of the same software differ: the standard deviation
// of one run's value, and its degrees of freedom. An assumed spread has +Inf
// degrees of freedom.
type Spread struct{ Deviation, Freedom float64 }

// PooledSpread is the spread within groups; each group has one value a run. A
// group of one run adds nothing. ok is false if no group has two runs.
func PooledSpread(groups ...[]float64) (s Spread, ok bool) {
	squares := 0.0
	for _, g := range groups {
		if len(g) > 1 {
			squares += stat.Variance(g, nil) * float64(len(g)-1)
			s.Freedom += float64(len(g) - 1)
		}
	}
	if s.Freedom == 0 {
		return Spread{}, false
	}
	s.Deviation = math.Sqrt(squares / s.Freedom)
	return s, true
}

// standardError is that of the difference between the means of n and m runs.
func (s Spread) standardError(n, m int) float64 {
	return s.Deviation * math.Sqrt(1/float64(n)+1/float64(m))
}

// Shift estimates the mean of subject minus the mean of baseline, with one
// value a run. Interval and p-value are Student's t with the given spread. The
// run is the unit, because a run's trials share the machine's state. N is the
// number of runs of both sides. P is at most 1 − level exactly where the
// interval excludes 0.
func Shift(subject, baseline []float64, s Spread, level float64) (e Estimate, ok bool, err error) {
	if err := errors.Join(levelInRange(level), finite(subject), finite(baseline)); err != nil {
		return Estimate{}, false, fmt.Errorf("difference of runs: %w", err)
	}
	if len(subject) == 0 || len(baseline) == 0 {
		return Estimate{}, false, nil
	}
	t := distuv.StudentsT{Sigma: 1, Nu: s.Freedom}
	shift := stat.Mean(subject, nil) - stat.Mean(baseline, nil)
	se := s.standardError(len(subject), len(baseline))
	e = Estimate{P: 1, Interval: Interval{Median: shift, Low: shift, High: shift, N: len(subject) + len(baseline), Level: level}}
	switch {
	case se > 0:
		half := se * quantile(t, (1+level)/2)
		e.Low, e.High = shift-half, shift+half
		e.P = 2 * cdf(t, -math.Abs(shift)/se)
	case shift != 0:
		e.P = 0
	}
	return e, true, nil
}

// Detectable returns the smallest difference between n and m runs that Shift
// finds at significance alpha with probability power.
func (s Spread) Detectable(n, m int, alpha, power float64) (float64, error) {
	if err := powerInRange(alpha, power); err != nil {
		return 0, err
	}
	if math.IsInf(s.Freedom, 1) {
		return s.standardError(n, m) * (distuv.UnitNormal.Quantile(1-alpha/2) + distuv.UnitNormal.Quantile(power)), nil
	}
	return s.standardError(n, m) * detectableShift(s.Freedom, alpha, power), nil
}

func quantile(t distuv.StudentsT, p float64) float64 {
	if math.IsInf(t.Nu, 1) {
		return distuv.UnitNormal.Quantile(p)
	}
	return t.Quantile(p)
}

func cdf(t distuv.StudentsT, x float64) float64 {
	if math.IsInf(t.Nu, 1) {
		return distuv.UnitNormal.CDF(x)
	}
	return t.CDF(x)
}

// MedianError is the standard error of the median of normal values with the
// spread of xs. ok is false for fewer than two values.
func MedianError(xs []float64) (float64, bool) {
	if len(xs) < 2 || finite(xs) != nil {
		return 0, false
	}
	return spread(xs) * math.Sqrt(math.Pi/2/float64(len(xs))), true
}
