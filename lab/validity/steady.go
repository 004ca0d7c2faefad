package validity

import (
	"fmt"
	"math"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// steps has the points of a series. Each describes a step that lies completely within
// the window.
type steps []sample.Point

// inside leaves out NaN and infinite rates.
func inside(points []sample.Point, window float64) steps {
	const rounding = 1e-3 // s; of the edges
	var s steps
	for i := 1; i < len(points); i++ {
		bits, ok := finite(points[i].Bits)
		from, to := points[i-1].At, points[i].At
		if ok && bits >= 0 && from >= -rounding && from < to && to <= window+rounding {
			s = append(s, points[i])
		}
	}
	return s
}

func (s steps) rates() []float64 {
	rates := make([]float64, len(s))
	for i, p := range s {
		rates[i] = p.Bits
	}
	return rates
}

func (s steps) times() []float64 {
	times := make([]float64, len(s))
	for i, p := range s {
		times[i] = p.At
	}
	return times
}

// median returns the median rate of at least one step.
func (s steps) median() float64 {
	m, _, _ := stats.Median(s.rates())
	return m
}

// startUp returns the index k of the first steady step. by is the difference of the
// rate before that step, in percent of the steady rate; 0 if the start-up ends in
// the first half of the window.
//
// A start-up has at most half of the steps. The search often yields exactly half for
// a series without a change. So half counts as a start-up only if the halves differ
// by more than limit; else k is 0.
func (s steps) startUp(limit float64) (k int, by float64) {
	k = stats.SteadyFrom(s.rates())
	if k < len(s)/2 || k == 0 || k >= len(s) {
		return k, 0
	}
	steady := s[k:].median()
	if by = percentOf(math.Abs(s[:k].median()-steady), steady); by <= limit {
		return 0, 0
	}
	return k, by
}

// percentOf returns part / whole in percent. The result is farOff at most, also if
// whole is 0.
func percentOf(part, whole float64) float64 {
	const farOff = 1e6
	if part == 0 {
		return 0
	}
	if p := 100 * part / whole; p <= farOff {
		return p
	}
	return farOff
}

// unsteady judges streams only. The rate of transactions in a step depends on the
// network's delays, not on its capacity.
func (v *verdict) unsteady() {
	if !v.Workload.Kind.Stream() {
		return
	}
	s := inside(v.Series, v.Window)
	if len(s) < max(v.limits.Points, 2) {
		v.skip(sample.Unsteady, fmt.Sprintf("%d steps of the series lie within the window; at least %d show whether the rate was steady: use a longer duration", len(s), v.limits.Points))
		return
	}
	k, by := s.startUp(v.limits.StartUp)
	if by > 0 {
		v.fail(sample.Unsteady, by, v.limits.StartUp, "%", fmt.Sprintf(
			"the rate had not settled after half of the window: it was %s before %.1f s and %s after, %.0f %% apart; the limit is %.3g %%: use a longer warm-up, or a quieter machine",
			units.FormatRate(s[:k].median()), s[k-1].At, units.FormatRate(s[k:].median()), by, v.limits.StartUp))
		return
	}
	if rest := s[k:]; !v.trend(rest) {
		v.spread(rest)
	}
}

// trend fails a rate that rises or falls through the window.
func (v *verdict) trend(s steps) (failed bool) {
	slope, ok, err := stats.Slope(s.times(), s.rates())
	if err != nil || !ok || slope == 0 {
		return false
	}
	by := percentOf(math.Abs(slope)*v.Window, s.median())
	p := stats.MannKendall(s.rates())
	if by <= v.limits.Trend || !(p < v.limits.TrendP) {
		return false
	}
	way := "rose"
	if slope < 0 {
		way = "fell"
	}
	v.fail(sample.Unsteady, by, v.limits.Trend, "%", fmt.Sprintf(
		"the rate %s by %.0f %% of its median, %s, in the course of the window (p = %.2g); the limit is %.3g %%: use a longer warm-up, or a quieter machine",
		way, by, units.FormatRate(s.median()), p, v.limits.Trend))
	return true
}

// spread fails an unlimited TCP stream whose rate varies too much. The rate of other
// streams is set by the workload, and short windows have too few steps.
func (v *verdict) spread(s steps) {
	if v.Workload.Kind != suite.TCPStream || v.Workload.Rate > 0 || v.Window <= v.limits.SpreadWindow {
		return
	}
	middle := s.median()
	apart := make(steps, len(s))
	for i, p := range s {
		apart[i].Bits = math.Abs(p.Bits - middle)
	}
	// 1.4826 converts the median deviation of normal noise to its standard deviation.
	by := percentOf(1.4826*apart.median(), middle)
	if by <= v.limits.Spread {
		return
	}
	v.fail(sample.Unsteady, by, v.limits.Spread, "%", fmt.Sprintf(
		"the rate jumped: the steps of the series spread by %.0f %% of their median, %s; the limit is %.3g %%: use a quieter machine, or CPUs of its own for each node",
		by, units.FormatRate(middle), v.limits.Spread))
}
