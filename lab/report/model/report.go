// Package model has the values of a report, as `windtunnel report --format json` writes
// them. It measures, judges and words nothing.
package model

import (
	"slices"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Report is the summary of one run. Its JSON is the output of `windtunnel report
// --format json`. Metrics that were not measured are absent.
type Report struct {
	Run         RunInfo          `json:"run"`
	Scenarios   []Scenario       `json:"scenarios"`
	Comparisons []Comparison     `json:"comparisons"`
	Ladders     []Ladder         `json:"ladders,omitempty"`
	Hypotheses  []Hypothesis     `json:"hypotheses,omitempty"`
	Published   []Published      `json:"published,omitempty"`
	Tables      []PublishedTable `json:"published_tables,omitempty"`
	Conditions  Conditions       `json:"conditions,omitzero"` // of the machine during the trials
	Elsewhere   []Elsewhere      `json:"elsewhere,omitempty"` // figures at other CPU distances
	Validity    Validity         `json:"validity"`
	Precision   *Precision       `json:"precision,omitempty"` // nil if the plan asks for none
	Profiles    []Profile        `json:"profiles,omitempty"`
	// HostMatrices has the figures between pairs of hosts, for each scenario of the plan;
	// nil if the plan has no matrix.
	HostMatrices []HostMatrix `json:"host_matrices,omitempty"`
	Findings     []string     `json:"findings,omitempty"` // plain sentences
	Notes        []string     `json:"notes,omitempty"`
	Doubts       []string     `json:"-"` // notes on this run's gaps; part of Notes

	Systems map[string]string           `json:"-"` // as in suite.Plan
	Pairs   []suite.Comparison          `json:"-"` // of the plan
	Apart   map[suite.Comparison]string `json:"-"` // reasons why scenarios with figures are not compared
}

// RunInfo identifies the run.
type RunInfo struct {
	ID          string             `json:"id"`
	Name        string             `json:"name,omitempty"` // as the user gave it, and the note
	Note        string             `json:"note,omitempty"`
	Suite       string             `json:"suite"`
	Title       string             `json:"title"`
	Description string             `json:"description,omitempty"`
	Short       bool               `json:"short,omitempty"` // the run used the suite's short form
	Started     time.Time          `json:"started"`
	Finished    *time.Time         `json:"finished,omitempty"`
	Status      sample.Status      `json:"status"`
	Seed        uint64             `json:"seed"`
	Options     sample.Options     `json:"options,omitzero"`
	Environment sample.Environment `json:"environment"`
}

// Command returns the command that started the run, without --seed. Runs of earlier
// versions recorded only the suite.
func (i *RunInfo) Command() string {
	text := "windtunnel " + i.Options.Command
	if i.Options.Command == "" {
		if text += "run " + phrase.Shell([]string{i.Suite}); i.Short {
			text += " --short"
		}
	}
	if i.Options.Lenient {
		text += " --gates warn"
	}
	return text
}

// Row returns the scenario with this id; nil if there is none.
func (r *Report) Row(id string) *Scenario {
	i := slices.IndexFunc(r.Scenarios, func(s Scenario) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &r.Scenarios[i]
}

// Ratio returns the first comparison of subject in metric m, in the plan's order; nil
// if there is none. "" stands for any metric.
func (r *Report) Ratio(subject string, m sample.Metric) *Comparison {
	i := slices.IndexFunc(r.Comparisons, func(c Comparison) bool { return c.Subject == subject && (m == "" || c.Metric == m) })
	if i < 0 {
		return nil
	}
	return &r.Comparisons[i]
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

// Profile is the CPU profile of one side of a scenario.
type Profile struct {
	Scenario string `json:"scenario"`
	Side     string `json:"side"` // sender, receiver
	Data     string `json:"data"` // a folded.Profile, encoded
	// Slowdown is the ratio of throughput (or transactions) with the profiler to the
	// rate without it, within blocks.
	Slowdown *quantity.Interval `json:"slowdown,omitempty"`
	// Metered is the CPU time by the meter over the same windows, in cores. Sampled is
	// the CPU time by the samples that are not idle, in cores.
	Metered float64 `json:"metered_cores"`
	Sampled float64 `json:"sampled_cores"`
	// Bytes is the payload rate in the profiled trials, bytes per second; 0 if the
	// traffic is not a stream.
	Bytes float64 `json:"bytes_per_s,omitempty"`
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

// MostNamed is the maximum number of names in one sentence or for one reason.
const MostNamed = 20

// After compares for sorting: false comes before true.
func After(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
