package sample_test

import (
	"fmt"

	"windtunnel/lab/sample"
)

// The name of a metric is also its key in JSON and in the store. Tools and meters must set it in
// the unit that Describe returns.
func ExampleDescribe() {
	for _, m := range []sample.Metric{sample.Throughput, sample.SenderCPUPerByte, sample.LatencyP99, sample.LossRatio} {
		info, _ := sample.Describe(m)
		fmt.Printf("%s: %s, unit %q\n", m, info.Label, info.Unit)
	}
	// Output:
	// throughput_bps: throughput, unit "bit/s"
	// sender_cpu_ns_per_byte: sender CPU per byte, unit "ns/B"
	// latency_ns_p99: latency p99, unit "ns"
	// loss_ratio: loss, unit "1"
}

// An attempt does not count if it failed a gate or has no figures. Then the trial is attempted again.
// Figures use the last attempt of each block that counts. In block 2 no attempt counts.
func ExampleCounting() {
	busy := sample.Gate{Name: sample.ForeignCPU, Value: 12, Limit: 3, Unit: "%"}
	samples := []*sample.Sample{
		{Block: 0, Attempt: 0, Gates: []sample.Gate{busy}},
		{Block: 0, Attempt: 1, Metrics: sample.Metrics{sample.Throughput: 17.9e9}},
		{Block: 1, Attempt: 0, Metrics: sample.Metrics{sample.Throughput: 18.1e9}},
		{Block: 2, Attempt: 0, Failure: &sample.Failure{Kind: sample.ToolHung, Message: "iperf3 did not end within 12 s and was killed"}},
	}
	for _, s := range samples {
		fmt.Printf("block %d, attempt %d: counts %t, cause %q\n", s.Block, s.Attempt, s.Counts(), s.Cause())
	}
	for _, s := range sample.Counting(samples) {
		fmt.Printf("block %d: %.1f Gbit/s\n", s.Block, s.Metrics[sample.Throughput]/1e9)
	}
	// Output:
	// block 0, attempt 0: counts false, cause "foreign-cpu"
	// block 0, attempt 1: counts true, cause ""
	// block 1, attempt 0: counts true, cause ""
	// block 2, attempt 0: counts false, cause "tool-hung"
	// block 0: 17.9 Gbit/s
	// block 1: 18.1 Gbit/s
}
