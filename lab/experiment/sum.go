package experiment

import (
	"maps"
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/tool"
)

// sum makes one measurement of all pairs': rates and counts add up, ratios are
// the mean, and latencies come from the merged distribution.
func sum(all []tool.Measurement) (tool.Measurement, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	total := tool.Measurement{Metrics: sample.Metrics{}}
	values := map[sample.Metric][]float64{}
	var histograms []string
	for _, m := range all {
		total.Warnings = append(total.Warnings, m.Warnings...)
		if m.Latency != "" {
			histograms = append(histograms, m.Latency)
		}
		for metric, v := range m.Metrics {
			values[metric] = append(values[metric], v)
		}
	}
	for _, metric := range slices.Sorted(maps.Keys(values)) {
		if v, ok := together(metric, values[metric], len(all)); ok {
			total.Metrics[metric] = v
		}
	}
	return total, mergeLatencies(&total, histograms)
}

// together combines one metric of n pairs. A percentile of several pairs is
// not to be had from theirs, and a sum with a part missing is no sum.
func together(m sample.Metric, values []float64, n int) (float64, bool) {
	if len(values) < n {
		return 0, false
	}
	total := 0.0
	for _, v := range values {
		total += v
	}
	switch m {
	case sample.LatencyP50, sample.LatencyP90, sample.LatencyP99, sample.LatencyP999:
		return 0, false
	case sample.ToolSenderCPUPerByte, sample.ToolReceiverCPUPerByte:
		return 0, false // each pair's tool divides the whole machine's by its own bytes
	case sample.LatencyMin:
		return slices.Min(values), true
	case sample.LatencyMax:
		return slices.Max(values), true
	case sample.LatencyMean, sample.LossRatio, sample.ToolSenderCPU, sample.ToolReceiverCPU:
		return total / float64(n), true
	}
	return total, true
}

func mergeLatencies(total *tool.Measurement, histograms []string) error {
	if len(histograms) == 0 {
		return nil
	}
	merged, ok, err := stats.MergeHistograms(histograms)
	if err != nil {
		return failed(sample.Invalid, "merge the latencies of all pairs: %w", err)
	}
	if !ok {
		return nil
	}
	for m, p := range map[sample.Metric]float64{sample.LatencyP50: 50, sample.LatencyP90: 90, sample.LatencyP99: 99, sample.LatencyP999: 99.9} {
		if v, ok := merged.Percentile(p); ok {
			total.Metrics[m] = v
		}
	}
	total.Latency, err = merged.Encode()
	return err
}
