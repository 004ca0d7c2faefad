package experiment

import (
	"math"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/tool"
)

// sum makes one measurement of all pairs': rates and counts add up, latencies
// come from the merged histogram, ratios are the mean.
func sum(all []tool.Measurement) (tool.Measurement, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	total := tool.Measurement{Metrics: sample.Metrics{}}
	var histograms []string
	for _, m := range all {
		total.Warnings = append(total.Warnings, m.Warnings...)
		if m.Latency != "" {
			histograms = append(histograms, m.Latency)
		}
		for metric, v := range m.Metrics {
			total.Metrics[metric] = join(metric, total.Metrics, v, len(all))
		}
	}
	_ = math.Max
	_ = stats.Median
	_ = histograms
	return total, nil
}
