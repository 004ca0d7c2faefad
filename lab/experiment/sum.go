package experiment

import (
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/tool"
)

// sum combines the measurements of all pairs: rates and counts are added, ratios and
// mean latencies are weighted means, and percentiles come from the merged
// histogram.
func sum(all []tool.Measurement) (tool.Measurement, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	total := tool.Measurement{Metrics: sample.Metrics{}, From: all[0].From}
	var histograms []string
	for _, m := range all {
		total.Warnings, total.Course = append(total.Warnings, m.Warnings...), append(total.Course, m.Course...)
		total.From, total.To = min(total.From, m.From), max(total.To, m.To)
		total.Began, total.Ended = total.Began+m.Began/int64(len(all)), total.Ended+m.Ended/int64(len(all))
		if m.Latency != "" {
			histograms = append(histograms, m.Latency)
		}
	}
	for metric := range all[0].Metrics {
		if v, ok := combine(metric, all); ok {
			total.Metrics[metric] = v
		}
	}
	return total, mergeLatencies(&total, histograms)
}

// combine combines one metric of all pairs. It has no result for percentiles, and
// for a metric that a pair lacks.
func combine(m sample.Metric, all []tool.Measurement) (float64, bool) {
	var values []float64
	total := 0.0
	for _, pair := range all {
		v, ok := pair.Metrics[m]
		if !ok {
			return 0, false
		}
		values = append(values, v)
		total += v
	}
	switch m {
	case sample.LatencyP50, sample.LatencyP90, sample.LatencyP99, sample.LatencyP999:
		return 0, false
	case sample.ToolSenderCPUPerByte, sample.ToolReceiverCPUPerByte:
		return 0, false // each tool divides the whole machine's CPU time by the bytes of its pair
	case sample.LatencyMin:
		return slices.Min(values), true
	case sample.LatencyMax, sample.Interruption:
		return slices.Max(values), true
	case sample.LatencyMean:
		return weighted(values, all, func(ms sample.Metrics) (float64, bool) {
			n, ok := ms[sample.Transactions]
			return n, ok
		})
	case sample.LossRatio:
		return weighted(values, all, sent)
	case sample.ToolSenderCPU, sample.ToolReceiverCPU: // every pair reports the CPU of the same machine
		return total / float64(len(all)), true
	case sample.ToolSenderFrame, sample.ToolReceiverFrame: // a ratio; the pairs send the same traffic
		return total / float64(len(all)), true
	}
	return total, true
}

// setHostShare sets the throughput of the last pair, and its share of that of all pairs. The last
// pair runs on the nodes' own virtual NICs.
func setHostShare(total, host sample.Metrics) {
	if whole := total[sample.Throughput]; whole > 0 {
		total.Set(sample.HostThroughput, host[sample.Throughput])
		total.Set(sample.HostShare, host[sample.Throughput]/whole)
	}
}

// weighted returns a weighted mean over pairs; ok is false if a weight is unknown.
func weighted(values []float64, all []tool.Measurement, weight func(sample.Metrics) (float64, bool)) (mean float64, ok bool) {
	sum := 0.0
	for i, pair := range all {
		w, ok := weight(pair.Metrics)
		if !ok {
			return 0, false
		}
		mean, sum = mean+w*values[i], sum+w
	}
	return mean / sum, sum > 0
}

// sent returns the datagrams or requests that a pair sent per second. Without a
// count it computes them from arrivals and loss.
func sent(ms sample.Metrics) (float64, bool) {
	if n, ok := ms[sample.DatagramsSent]; ok {
		return n, true
	}
	arrived, ok := ms[sample.DatagramsReceived]
	if !ok {
		arrived, ok = ms[sample.Transactions]
	}
	loss := ms[sample.LossRatio]
	return arrived / (1 - loss), ok && loss < 1
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
