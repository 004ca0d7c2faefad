package model

import (
	"fmt"
	"slices"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
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
	Report    *Report    `json:"-"`
}

// Few reports whether each scenario has fewer trials than a 95 % interval needs.
func (e *Elsewhere) Few() bool {
	return !slices.ContainsFunc(e.Scenarios, func(s Scenario) bool { return s.Trials >= stats.MinimumTrials(stats.Level) })
}

// Title returns the title of these tables, with the CPU distance.
func (e *Elsewhere) Title() string {
	return fmt.Sprintf("Trials in which the host had the CPUs %.0f ns from each other", e.Distance)
}
