package model

import (
	"slices"

	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// profiles merges the profiles of each scenario's trials, separately for sender and
// receiver. It leaves out trials that failed a gate.
func (b *builder) profiles() []Profile {
	var list []Profile
	for i := range b.rows {
		row := &b.rows[i]
		var trials []*sample.Sample
		for j := range row.Samples {
			if s := &row.Samples[j]; s.OK() && len(s.Gates) == 0 {
				trials = append(trials, s)
			}
		}
		for _, side := range []string{"sender", "receiver"} {
			if p, err := b.profile(row.ID, side, trials); err != nil {
				b.doubt.Say("%s: the %s's profiles cannot be merged: %v.", row.ID, side, err)
			} else if p.Data != "" {
				p.Slowdown = b.slowdown(row.ID, trials)
				list = append(list, p)
			}
		}
	}
	return list
}

// profile merges the profiles of one side. Data is "" if there are none. A profile that
// cannot be decoded is left out and adds a doubt.
func (b *builder) profile(id, side string, trials []*sample.Sample) (Profile, error) {
	var parts []*folded.Profile
	busy, seconds, bytes := 0.0, 0.0, 0.0
	for _, s := range trials {
		for _, stored := range s.Profiles {
			if stored.Side != side {
				continue
			}
			p, err := folded.Decode(stored.Data)
			if err != nil {
				b.doubt.Say("%s block %d: the %s's profile is left out: %v.", id, s.Block, side, err)
				continue
			}
			parts = append(parts, p)
			busy, seconds, bytes = busy+stored.Cores*p.Seconds, seconds+p.Seconds, bytes+s.Metrics[sample.Throughput]/8*p.Seconds
		}
	}
	if seconds <= 0 {
		return Profile{}, nil
	}
	merged, err := folded.Merge(parts...)
	if err != nil {
		return Profile{}, err
	}
	data, err := folded.Encode(merged)
	return Profile{Scenario: id, Side: side, Data: data, Metered: busy / seconds, Sampled: folded.Sum(merged).Busy, Bytes: bytes / seconds}, err
}

// slowdown returns the ratio of the rates of profiled trials to those without the
// profiler in the same blocks; nil if there is no ratio.
func (b *builder) slowdown(id string, trials []*sample.Sample) *quantity.Interval {
	c, metric := b.cells[id], sample.Throughput
	if len(c.values[sample.Transactions]) > 0 {
		metric = sample.Transactions
	}
	var with, without []float64
	for _, s := range trials {
		v, ok := s.Metrics[metric]
		if i, both := slices.BinarySearch(c.blocks[metric], s.Block); ok && both && s.Profiled {
			with, without = append(with, v), append(without, c.values[metric][i])
		}
	}
	e, ok, err := stats.Ratio(with, without, stats.Level)
	if err != nil {
		b.doubt.Say("%s: the cost of the profiler is not known: %v.", id, err)
	}
	if !ok || err != nil {
		return nil
	}
	return (*quantity.Interval)(&e.Interval)
}

// ProfilesOf lists a scenario's profiles, the sender's first.
func (r *Report) ProfilesOf(scenario string) []*Profile {
	var list []*Profile
	for i := range r.Profiles {
		if r.Profiles[i].Scenario == scenario {
			list = append(list, &r.Profiles[i])
		}
	}
	return list
}
