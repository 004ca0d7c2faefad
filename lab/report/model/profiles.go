package model

import (
	"fmt"

	"windtunnel/lab/profile/folded"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/units"
)

// profiles merges each scenario's profiles over its trials, side by side.
func (b *builder) profiles() []Profile {
	var list []Profile
	for i := range b.plan.Scenarios {
		id := b.plan.Scenarios[i].ID
		c := b.cells[id]
		for _, side := range []string{"sender", "receiver"} {
			if p, ok := b.profile(id, side, c); ok {
				p.Slowdown = b.slowdown(id, c)
				list = append(list, p)
			}
		}
	}
	return list
}

// profile merges one side's. A trial that failed a gate is left out, and one
// that cannot be read is noted.
func (b *builder) profile(id, side string, c *cell) (Profile, bool) {
	var parts []*folded.Profile
	busy, seconds, bytes := 0.0, 0.0, 0.0
	for _, s := range c.all {
		if !s.OK() || len(s.Gates) > 0 {
			continue
		}
		for _, stored := range s.Profiles {
			if stored.Side != side {
				continue
			}
			p, err := folded.Decode(stored.Data)
			if err != nil {
				b.doubt = append(b.doubt, fmt.Sprintf("%s block %d: the %s's profile is left out: %v.", id, s.Block, side, err))
				continue
			}
			if v := s.Metrics[sample.Throughput]; units.Finite(v) && units.Finite(stored.Cores) {
				parts = append(parts, p)
				busy += stored.Cores * p.Seconds
				seconds += p.Seconds
				bytes += v / 8 * p.Seconds
			}
		}
	}
	if len(parts) == 0 || seconds <= 0 {
		return Profile{}, false
	}
	merged, err := folded.Merge(parts...)
	if err == nil {
		var data string
		if data, err = folded.Encode(merged); err == nil {
			return Profile{Scenario: id, Side: side, Data: data, Metered: busy / seconds, Sampled: folded.Sum(merged).Busy, Bytes: bytes / seconds}, true
		}
	}
	b.doubt = append(b.doubt, fmt.Sprintf("%s: the %s's profiles cannot be put together: %v.", id, side, err))
	return Profile{}, false
}

// slowdown compares the profiled trials of a scenario with the others of the
// same blocks.
func (b *builder) slowdown(id string, c *cell) *Interval {
	metric := sample.Throughput
	if len(c.values[sample.Transactions]) > 0 {
		metric = sample.Transactions
	}
	var with, without []float64
	for _, s := range c.all {
		v, ok := s.Metrics[metric]
		if !ok || !units.Finite(v) || !s.Profiled || !s.OK() || len(s.Gates) > 0 {
			continue
		}
		for i, block := range c.blocks[metric] {
			if block == s.Block {
				with, without = append(with, v), append(without, c.values[metric][i])
			}
		}
	}
	e, ok, err := stats.Ratio(with, without, stats.Level)
	if err != nil {
		b.doubt = append(b.doubt, fmt.Sprintf("%s: what the profiler costs has no ratio: %v.", id, err))
	}
	if !ok || err != nil {
		return nil
	}
	return (*Interval)(&e.Interval)
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
