package model

import "windtunnel/lab/sample"

// Percentiles lists the percentiles of latency that reports show, in ascending
// order.
var Percentiles = []struct {
	Metric sample.Metric
	Name   string
}{
	{sample.LatencyP50, "p50"}, {sample.LatencyP90, "p90"}, {sample.LatencyP99, "p99"},
	{sample.LatencyP999, "p99.9"}, {sample.LatencyMax, "max"},
}

// latency returns the medians of the trials' percentiles; nil if the traffic has no
// latency.
func (c *cell) latency() *Latency {
	median := func(m sample.Metric) *float64 {
		if iv, ok := c.summary[m]; ok {
			return &iv.Median
		}
		return nil
	}
	l := Latency{
		P50: median(sample.LatencyP50), P90: median(sample.LatencyP90), P99: median(sample.LatencyP99),
		P999: median(sample.LatencyP999), Max: median(sample.LatencyMax),
	}
	if l == (Latency{}) {
		return nil
	}
	return &l
}
