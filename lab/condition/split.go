// Package condition finds the state that the machine was in during a trial, and
// converts the trial's figures to one state: it chooses the slices of the time
// series that count, and adjusts figures for the distance of the CPUs and for
// steal. It does no I/O.
package condition

import "windtunnel/lab/sample"

// Split divides a run's samples by the level at which they ran. parts has one
// entry for each level, or a single entry without readings. shown is the level
// that the run chose (Near or Far) if a sample there counts, else the level with
// the most samples that count. A sample without a level (both endpoints on
// one node, or no figures that count) is in the part of shown.
func Split(samples []sample.Sample, choice Choice) (levels []Level, parts [][]sample.Sample, shown int) {
	var readings []float64
	for i := range samples {
		for _, p := range samples[i].Series {
			if p.CPUDistance > 0 {
				readings = append(readings, p.CPUDistance)
			}
		}
	}
	levels = Levels(readings)
	at := make([]int, len(samples))
	trials := make([]int, max(len(levels), 1))
	for i := range samples {
		at[i] = -1
		if d, ok := samples[i].Metrics[sample.CPUDistance]; ok && samples[i].Counts() {
			if at[i] = Of(levels, d); at[i] >= 0 {
				trials[at[i]]++
			}
		}
	}
	for l, n := range trials {
		if n > trials[shown] {
			shown = l
		}
	}
	if choice == Near || choice == Far {
		if l := choice.Choose(levels); l >= 0 && trials[l] > 0 {
			shown = l
		}
	}
	parts = make([][]sample.Sample, len(trials))
	for i, s := range samples {
		l := at[i]
		if l < 0 {
			l = shown
		}
		parts[l] = append(parts[l], s)
	}
	return levels, parts, shown
}
