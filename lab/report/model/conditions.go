package model

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/condition"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// Conditions describe the state of the machine during the trials that count.
type Conditions struct {
	// Distances are the levels of the distance between the nodes' CPUs, nearest
	// first.
	Distances []Distance `json:"cpu_distances,omitempty"`
	// MemoryCopy is the speed at which the nodes' CPUs copied memory in the trials
	// that count, bits per second.
	MemoryCopy *quantity.Interval `json:"memory_copy_bps,omitempty"`
	// LeftOut is the share of the time slices that the figures leave out, by reason,
	// 0..1. It counts slices within the windows of the trials that count.
	LeftOut map[sample.LeftOut]float64 `json:"left_out,omitempty"`
	// Adjusted: the figures are adjusted to the distance shown and to no steal.
	// Stolen is then the share of the slices with steal, 0..1.
	Adjusted bool    `json:"adjusted,omitempty"`
	Stolen   float64 `json:"stolen,omitempty"`
}

// Distance is one level of the distance between the nodes' CPUs.
type Distance struct {
	Low    float64 `json:"low_ns"`
	Median float64 `json:"median_ns"`
	High   float64 `json:"high_ns"`
	Share  float64 `json:"share"`  // share of the run's readings, 0..1
	Trials int     `json:"trials"` // trials that count and ran at this distance
	Shown  bool    `json:"shown"`  // the report shows the figures of this level
}

// Elsewhere has the figures of the trials at another CPU distance than the one that
// the report shows.
type Elsewhere struct {
	Distance  float64    `json:"cpu_distance_ns"`
	Scenarios []Scenario `json:"scenarios"`
	report    *Report
}

// Everywhere lists each scenario at the distance that the report shows,
// followed by the same scenario at the other distances.
func (r *Report) Everywhere() []*Scenario {
	var list []*Scenario
	for i := range r.Scenarios {
		list = append(list, &r.Scenarios[i])
		for j := range r.Elsewhere {
			for k := range r.Elsewhere[j].Scenarios {
				if other := &r.Elsewhere[j].Scenarios[k]; other.ID == r.Scenarios[i].ID {
					list = append(list, other)
				}
			}
		}
	}
	return list
}

// Figures returns the tables of this CPU distance. It leaves out the workloads
// without a trial at this distance.
func (e *Elsewhere) Figures() []Figures {
	return slices.DeleteFunc(e.report.Figures(), func(f Figures) bool {
		return !slices.ContainsFunc(f.Rows, func(s *Scenario) bool { return s.Trials > 0 })
	})
}

// Title returns the title of these tables, with the CPU distance.
func (e *Elsewhere) Title() string {
	return fmt.Sprintf("Trials in which the host had the CPUs %.0f ns from each other", e.Distance)
}

// split divides a run's samples by CPU distance. parts[shown] is the part that the
// report shows.
func split(samples []sample.Sample, choice condition.Choice) (c Conditions, parts [][]sample.Sample, shown int) {
	levels, parts, shown := condition.Split(samples, choice)
	for i, l := range levels {
		at := valuesOf(counting(parts[i]), sample.CPUDistance)
		c.Distances = append(c.Distances, Distance{Low: l.Low, Median: l.Median, High: l.High, Share: l.Share, Shown: i == shown, Trials: len(at)})
	}
	return c, parts, shown
}

// counting returns the samples that count.
func counting(samples []sample.Sample) []sample.Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s sample.Sample) bool { return !s.Counts() })
}

// observe sets MemoryCopy and LeftOut from the samples that count.
func (c *Conditions) observe(samples []sample.Sample) {
	samples = counting(samples)
	c.MemoryCopy = quantity.MedianInterval(valuesOf(samples, sample.MemoryCopy))
	for _, why := range leftOut {
		share := shareOf(samples, func(p sample.Point) bool { return p.LeftOut == why.reason })
		if share > 0 && !c.Adjusted {
			if c.LeftOut == nil {
				c.LeftOut = make(map[sample.LeftOut]float64)
			}
			c.LeftOut[why.reason] = share
		}
	}
}

// shareOf returns the share of slices for which has is true, 0..1. It counts the slices
// within the samples' windows.
func shareOf(samples []sample.Sample, has func(sample.Point) bool) float64 {
	all, n := 0, 0
	for i := range samples {
		for _, p := range condition.Inside(samples[i].Series, samples[i].Metrics[sample.WindowSeconds]) {
			if all++; has(p) {
				n++
			}
		}
	}
	return float64(n) / float64(max(all, 1))
}

// leftOut lists the reasons for which figures leave out slices.
var leftOut = []struct {
	reason sample.LeftOut
	text   string
}{
	{sample.StolenSlice, "the host ran other guests on the nodes' CPUs (steal)"},
	{sample.DistantSlice, "the host moved the nodes' CPUs to another distance within the trial"},
}

// ConditionLines returns sentences about the state of the machine in which the
// figures hold, and about the limits of the traffic. It returns none if no trial
// counts.
func (r *Report) ConditionLines() (lines phrase.Lines) {
	if r.Validity.Valid == 0 {
		return nil
	}
	c := &r.Conditions
	state := c.state()
	lines.SayIf(state != "", "The figures hold for %s.", state)
	for i := range r.Elsewhere {
		e := &r.Elsewhere[i]
		lines.Say("%s counted with the CPUs %.0f ns from each other: a separate table shows their figures.", phrase.Count(e.report.Validity.Valid, "trial"), e.Distance)
	}
	lines.SayIf(c.Adjusted, "The host changed the state of this machine too often to measure in one, and took its CPUs away in %.0f %% of the time: the figures are adjusted to that distance and to no steal, by a regression over slices of 100 ms. Ratios are less certain than on a machine with CPUs of its own.", 100*c.Stolen)
	for _, why := range leftOut {
		share := c.LeftOut[why.reason]
		lines.SayIf(share > 0, "The figures leave out %s of the measured time because %s.", quantity.Percentage(share), why.text)
	}
	var by phrase.Groups // scenarios by limit
	for i := range r.Scenarios {
		if s := &r.Scenarios[i]; s.Limit != "" {
			by.Add(string(s.Limit), s.ID+s.limitShare(" of its trials"))
		}
	}
	var limits []string
	for limit, scenarios := range by.All() {
		limits = append(limits, limit+": "+phrase.Some(scenarios, mostNamed))
	}
	lines.SayIf(limits != nil, "What limited the traffic: %s.", strings.Join(limits, "; "))
	return lines
}

// limitShare returns the share of the scenario's trials that the limit applied to,
// such as " (70 %)"; "" if it applied to all trials. of is the text after the percent sign.
func (s *Scenario) limitShare(of string) string {
	if s.LimitShare >= 0.95 {
		return ""
	}
	return fmt.Sprintf(" (%.0f %%%s)", 100*s.LimitShare, of)
}

// state describes the state of the machine; "" if nothing about it was read.
func (c *Conditions) state() string {
	var parts, others phrase.Lines
	for _, d := range c.Distances {
		others.SayIf(!d.Shown, "%.0f ns for %.0f %% of the time", d.Median, 100*d.Share)
		parts.SayIf(d.Shown && (d.Trials > 0 || c.Adjusted), "the nodes' CPUs %.0f ns from each other", d.Median)
	}
	if parts != nil && others != nil {
		parts[0] += " (the host also had them at " + phrase.And(others) + ")"
	}
	if c.MemoryCopy != nil {
		parts.Say("memory copied at %.1f GB/s", c.MemoryCopy.Median/8e9)
	}
	return phrase.And(parts)
}
