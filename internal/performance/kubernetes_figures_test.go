package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// trial identifies a trial: the round of clusters, and the block of the run.
type trial struct{ round, block int }

// trialValues has the values of one quantity.
type trialValues map[trial]float64

// networkFigures has the metrics of one network's trials, by scenario.
type networkFigures map[string]map[trial]sample.Metrics

// add adds the trials of a round that count.
func (f networkFigures) add(r *model.Report, round int) {
	for _, s := range r.Scenarios {
		for _, smp := range s.Counting() {
			if f[s.ID] == nil {
				f[s.ID] = map[trial]sample.Metrics{}
			}
			f[s.ID][trial{round, smp.Block}] = smp.Metrics
		}
	}
}

// of returns for each trial the sum of some metrics of a scenario. It leaves out trials that lack one of them.
func (f networkFigures) of(scenario string, metrics ...sample.Metric) trialValues {
	all := trialValues{}
	for at, has := range f[scenario] {
		sum, complete := 0.0, true
		for _, m := range metrics {
			x, ok := has[m]
			sum, complete = sum+x, complete && ok
		}
		if complete {
			all[at] = sum
		}
	}
	return all
}

// over divides the values of two quantities, trial by trial. It leaves out trials that only one of them has.
func (v trialValues) over(baseline trialValues) trialValues {
	all := trialValues{}
	for at, x := range v {
		if base := baseline[at]; base != 0 {
			all[at] = x / base
		}
	}
	return all
}

// byRound returns the median of each round. The trials of a round share a cluster, so they are not independent.
func (v trialValues) byRound(t *testing.T) trialValues {
	rounds := map[int][]float64{}
	for at, x := range v {
		rounds[at.round] = append(rounds[at.round], x)
	}
	all := trialValues{}
	for round, xs := range rounds {
		median, _, err := stats.Median(xs)
		must.Succeed(t, err)
		all[trial{round: round}] = median
	}
	return all
}

// alike returns the rounds in which two networks were measured at the same distance of the CPUs.
func (v trialValues) alike(distances trialValues) trialValues {
	const same = 1.6 // as in windtunnel compare
	all := trialValues{}
	for at, x := range v {
		if d, known := distances[at]; !known || max(d, 1/d) < same {
			all[at] = x
		}
	}
	return all
}

// list returns the values in the order of the trials.
func (v trialValues) list() (xs []float64) {
	order := slices.SortedFunc(maps.Keys(v), func(a, b trial) int { return cmp.Or(a.round-b.round, a.block-b.block) })
	for _, at := range order {
		xs = append(xs, v[at])
	}
	return xs
}

// absolute adds a row with the median of a quantity and its interval, by round.
func (b *kubernetesBench) absolute(t *testing.T, what string, v trialValues, unit string, scale float64) {
	t.Helper()
	iv, ok, err := stats.MedianInterval(v.byRound(t).list(), 0.95)
	if err != nil || !ok {
		t.Errorf("%s: no figure (%v)", what, err)
		return
	}
	b.note(what, fmt.Sprintf("%.4g [%.4g, %.4g] %s, n = %d", scale*iv.Median, scale*iv.Low, scale*iv.High, unit, iv.N))
}

// noTarget is the target of a figure without one.
var noTarget bound

// ratio adds a row with the median of quotients and its interval. The trials of a round count as one value.
func (b *kubernetesBench) ratio(t *testing.T, what string, quotients trialValues, target bound) {
	t.Helper()
	list := quotients.byRound(t).list()
	e, ok, err := stats.Ratio(list, slices.Repeat([]float64{1}, len(list)), 0.95)
	if err != nil || !ok {
		t.Errorf("%s: no figure (%v)", what, err)
		return
	}
	if target == noTarget {
		b.note(what, formatRatio(quantity.Interval(e.Interval)))
		return
	}
	b.judge(what, quantity.Interval(e.Interval), target)
}

// Trials of a round are not independent, so each round has one value.
func TestARoundHasOneValue(t *testing.T) {
	v := trialValues{{0, 0}: 2, {0, 1}: 9, {0, 2}: 3, {1, 0}: 5}
	want := trialValues{{0, 0}: 3, {1, 0}: 5}
	must.Equal(t, want, v.byRound(t))
	must.Equal(t, want, want.byRound(t))
}
