// Package profiles merges the CPU profiles of a run's trials, and says which categories of
// CPU time differ between two scenarios.
package profiles

import (
	"slices"

	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// Of merges the profiles of each scenario's trials, separately for sender and
// receiver. It leaves out trials that failed a gate.
func Of(b *verdicts.Judge) []model.Profile {
	var list []model.Profile
	for i := range b.Rows {
		row := &b.Rows[i]
		var trials []*sample.Sample
		for j := range row.Samples {
			if s := &row.Samples[j]; s.OK() && len(s.Gates) == 0 {
				trials = append(trials, s)
			}
		}
		for _, side := range []string{"sender", "receiver"} {
			if p, err := profile(b, row.ID, side, trials); err != nil {
				b.Doubt.Say("%s: the %s's profiles cannot be merged: %v.", row.ID, side, err)
			} else if p.Data != "" {
				p.Slowdown = slowdown(b, row.ID, trials)
				list = append(list, p)
			}
		}
	}
	return list
}

// profile merges the profiles of one side. Data is "" if there are none. A profile that
// cannot be decoded is left out and adds a doubt.
func profile(b *verdicts.Judge, id, side string, trials []*sample.Sample) (model.Profile, error) {
	var parts []*folded.Profile
	busy, seconds, bytes := 0.0, 0.0, 0.0
	for _, s := range trials {
		for _, stored := range s.Profiles {
			if stored.Side != side {
				continue
			}
			p, err := folded.Decode(stored.Data)
			if err != nil {
				b.Doubt.Say("%s block %d: the %s's profile is left out: %v.", id, s.Block, side, err)
				continue
			}
			parts = append(parts, p)
			busy, seconds, bytes = busy+stored.Cores*p.Seconds, seconds+p.Seconds, bytes+s.Metrics[sample.Throughput]/8*p.Seconds
		}
	}
	if seconds <= 0 {
		return model.Profile{}, nil
	}
	merged, err := folded.Merge(parts...)
	if err != nil {
		return model.Profile{}, err
	}
	data, err := folded.Encode(merged)
	return model.Profile{Scenario: id, Side: side, Data: data, Metered: busy / seconds, Sampled: folded.Sum(merged).Busy, Bytes: bytes / seconds}, err
}

// slowdown returns the ratio of the rates of profiled trials to those without the
// profiler in the same blocks; nil if there is no ratio.
func slowdown(b *verdicts.Judge, id string, trials []*sample.Sample) *quantity.Interval {
	c, metric := b.Cells[id], sample.Throughput
	if len(c.Values[sample.Transactions]) > 0 {
		metric = sample.Transactions
	}
	var with, without []float64
	for _, s := range trials {
		v, ok := s.Metrics[metric]
		if i, both := slices.BinarySearch(c.Blocks[metric], s.Block); ok && both && s.Profiled {
			with, without = append(with, v), append(without, c.Values[metric][i])
		}
	}
	e, ok, err := stats.Ratio(with, without, stats.Level)
	if err != nil {
		b.Doubt.Say("%s: the cost of the profiler is not known: %v.", id, err)
	}
	if !ok || err != nil {
		return nil
	}
	return (*quantity.Interval)(&e.Interval)
}
