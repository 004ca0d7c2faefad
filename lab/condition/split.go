// Package condition tells in which state the machine was while a trial ran, and
// makes the trial's figures those of one state: which slices of a time series
// they stand for, and how figures change with the distance of the CPUs and with
// steal. It does no I/O.
package condition

import "windtunnel/lab/sample"

// Split divides a run's samples by the level at which they ran. parts has one
// entry for each level, or a single one where no distance was read; shown is the
// level of most samples that count. Samples without a level of their own (both
// endpoints on one node, or without figures that count) are with shown.
func Split(samples []sample.Sample) (levels []Level, parts [][]sample.Sample, shown int) {
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
