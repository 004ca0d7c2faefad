package report

import (
	"fmt"
	"math"
	"strings"

	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
	"windtunnel/lab/units"
)

// Conditions are the state of the machine that a run's figures hold for.
type Conditions struct {
	// Distances are the levels of the distance between the nodes' CPUs, nearest
	// first.
	Distances []Distance `json:"cpu_distances,omitempty"`
	// MemoryCopy is how fast the nodes' CPUs copied memory in the trials that
	// count, bits per second.
	MemoryCopy *Interval `json:"memory_copy_bps,omitempty"`
	// LeftOut is the share of the slices, in the windows of the trials that
	// count, that their figures leave out, by reason, 0..1.
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
	Share  float64 `json:"share"`  // of the run's readings, 0..1
	Trials int     `json:"trials"` // that count and ran at it
	Shown  bool    `json:"shown"`  // the report's figures are of this level
}

// Elsewhere are the figures of trials at a level that the report's own figures
// are not of.
type Elsewhere struct {
	Distance  float64    `json:"cpu_distance_ns"`
	Scenarios []Scenario `json:"scenarios"`
	report    *Report
}

// everywhere lists each scenario at the distance that the report shows,
// followed by the same scenario at the other distances.
func (r *Report) everywhere() []*Scenario {
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

// Figures are the level's tables.
func (e *Elsewhere) Figures() []Figures { return e.report.Figures() }

// Title says which level the tables are of.
func (e *Elsewhere) Title() string {
	return fmt.Sprintf("Trials in which the host had the CPUs %.0f ns from each other", e.Distance)
}

// split parts a run's samples by the distance of the CPUs.
func split(samples []sample.Sample, choice condition.Choice) (c Conditions, here []sample.Sample, elsewhere [][]sample.Sample) {
	levels, parts, shown := condition.Split(samples, choice)
	for i, l := range levels {
		d := Distance{Low: l.Low, Median: l.Median, High: l.High, Share: l.Share, Shown: i == shown}
		for j := range parts[i] {
			if _, read := parts[i][j].Metrics[sample.CPUDistance]; read && parts[i][j].Counts() {
				d.Trials++
			}
		}
		c.Distances = append(c.Distances, d)
	}
	for i, part := range parts {
		if i != shown && len(part) > 0 {
			elsewhere = append(elsewhere, part)
		}
	}
	return c, parts[shown], elsewhere
}

// observe adds what the trials that count say of the conditions.
func (c *Conditions) observe(samples []sample.Sample) {
	var speeds []float64
	left, all := map[sample.LeftOut]int{}, 0
	for i := range samples {
		s := &samples[i]
		if !s.Counts() {
			continue
		}
		if v, ok := s.Metrics[sample.MemoryCopy]; ok && units.Finite(v) {
			speeds = append(speeds, v)
		}
		for _, p := range condition.Inside(s.Series, s.Metrics[sample.WindowSeconds]) {
			all++
			if p.LeftOut != "" && !c.Adjusted {
				left[p.LeftOut]++
			}
		}
	}
	c.MemoryCopy = MedianInterval(speeds)
	for why, n := range left {
		if c.LeftOut == nil {
			c.LeftOut = map[sample.LeftOut]float64{}
		}
		c.LeftOut[why] = float64(n) / float64(all)
	}
}

// adjusted notes that the figures are adjusted, and for how much steal.
func (c *Conditions) adjusted(samples []sample.Sample) {
	c.Adjusted = true
	all, stolen := 0, 0
	for i := range samples {
		for _, p := range condition.Inside(samples[i].Series, samples[i].Metrics[sample.WindowSeconds]) {
			if all++; p.Steal > 0 {
				stolen++
			}
		}
	}
	c.Stolen = float64(stolen) / float64(max(all, 1))
}

// Lines say what the figures hold for.
func (c Conditions) Lines() []string {
	var lines []string
	if line := c.state(); line != "" {
		lines = append(lines, line)
	}
	if c.Adjusted {
		lines = append(lines, fmt.Sprintf("The host changed the state of this machine too often to measure in one, and took its CPUs away in %.0f %% of the time: the figures are adjusted to that distance and to no steal, by a regression over slices of 100 ms. Ratios are less certain than on a machine with CPUs of its own.", 100*c.Stolen))
	}
	for _, why := range []struct {
		reason sample.LeftOut
		text   string
	}{
		{sample.StolenSlice, "because the host ran other guests on the nodes' CPUs (steal)"},
		{sample.DistantSlice, "because the host moved the nodes' CPUs to another distance within the trial"},
	} {
		if share := c.LeftOut[why.reason]; share > 0 {
			lines = append(lines, fmt.Sprintf("The figures leave out %s of the measured time %s.", units.FormatPercent(math.Round(1000*share)/1000), why.text))
		}
	}
	return lines
}

// Limits returns a sentence with the limit of each scenario's traffic; empty if
// none is known.
func (r *Report) Limits() string {
	var parts []string
	by := map[sample.Limit][]string{}
	var order []sample.Limit
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if s.Limit == "" {
			continue
		}
		name := s.ID
		if s.LimitShare < 0.95 {
			name += fmt.Sprintf(" (%.0f %% of its trials)", 100*s.LimitShare)
		}
		if by[s.Limit] == nil {
			order = append(order, s.Limit)
		}
		by[s.Limit] = append(by[s.Limit], name)
	}
	for _, l := range order {
		parts = append(parts, fmt.Sprintf("%s: %s", l, strings.Join(by[l], ", ")))
	}
	if len(parts) == 0 {
		return ""
	}
	return "What limited the traffic: " + strings.Join(parts, "; ") + "."
}

// ConditionLines returns the lines of the section Conditions, Limits included.
func (r *Report) ConditionLines() []string {
	lines := r.Conditions.Lines()
	if l := r.Limits(); l != "" {
		lines = append(lines, l)
	}
	return lines
}

// state is the condition in a sentence; empty where nothing was read.
func (c Conditions) state() string {
	text := ""
	for _, d := range c.Distances {
		if d.Shown {
			text = fmt.Sprintf("the nodes' CPUs %.0f ns from each other", d.Median)
		}
	}
	if len(c.Distances) > 1 {
		text += " (the host also had them at "
		first := true
		for _, d := range c.Distances {
			if d.Shown {
				continue
			}
			if !first {
				text += " and "
			}
			first = false
			text += fmt.Sprintf("%.0f ns for %.0f %% of the time", d.Median, 100*d.Share)
		}
		text += ")"
	}
	if c.MemoryCopy != nil {
		if text != "" {
			text += " and "
		}
		text += fmt.Sprintf("memory copied at %.1f GB/s", c.MemoryCopy.Median/8e9)
	}
	if text == "" {
		return ""
	}
	return "The figures hold for " + text + "."
}
