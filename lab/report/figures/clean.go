package figures

import (
	"slices"

	"windtunnel/lab/sample"
)

// Clean copies the samples. It leaves out tool outputs, and values that are not finite
// numbers. dirty maps each scenario to its metrics that lost a value. It only has values
// of trials that count.
func Clean(samples []sample.Sample) (list []sample.Sample, dirty map[string][]sample.Metric) {
	list, dirty = make([]sample.Sample, len(samples)), make(map[string][]sample.Metric)
	for i := range samples {
		s := &samples[i]
		list[i], _ = s.Clean()
		list[i].Outputs = nil
		for m := range s.Metrics {
			if _, finite := list[i].Metrics[m]; !finite {
				list[i].Profiles = nil // the profile no longer matches the figures
				if s.Counts() && !slices.Contains(dirty[s.Scenario], m) {
					dirty[s.Scenario] = append(dirty[s.Scenario], m)
				}
			}
		}
	}
	return list, dirty
}
