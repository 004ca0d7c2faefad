package main

import (
	"fmt"
	"math"
	"slices"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// agreement compares the built-in generator with iperf3 and netperf, and every tool
// with the fabric's counters.
func (b *session) agreement() error {
	r, err := b.suite("agreement")
	if err != nil {
		return err
	}
	for _, other := range []string{"iperf3", "netperf"} {
		b.ratio(r, "builtin/stream", other+"/stream", sample.Throughput, "throughput of "+other+"'s", "≥ 1", +1)
		b.ratio(r, "builtin/stream", other+"/stream", sample.SenderCPUPerByte, "sender CPU per byte of "+other+"'s", "≤ 1", -1)
		b.ratio(r, "builtin/stream", other+"/stream", sample.ReceiverCPUPerByte, "receiver CPU per byte of "+other+"'s", "≤ 1", -1)
	}
	b.ratio(r, "builtin/rr", "netperf/rr", sample.Transactions, "TCP_RR transactions of netperf's", "≥ 1", +1)
	if _, ok := find(r, "builtin/stream"); !ok {
		return fmt.Errorf("builtin/stream has no figures")
	}
	for _, tool := range []string{"builtin", "builtin-ntttcp", "fio", "iperf3", "netperf", "qperf"} {
		b.counters(r, tool)
	}
	return nil
}

// counters compares a tool's throughput with the fabric's byte counters without headers.
// The built-in generator counts in the meter's window, so counters prints the largest
// difference of a trial. Another tool has its own window, and the stream's rate varies
// between the two windows. So counters prints the difference of the median trial.
func (b *session) counters(r *model.Report, tool string) {
	own := tool == "builtin"
	figure, limit := tool+": throughput against the fabric's byte counters less headers, median trial", 0.02
	if own {
		figure, limit = "throughput against the fabric's byte counters less headers: farthest trial", 0.01
	}
	target := fmt.Sprintf("≤ %.0f %%", 100*limit)
	s, _ := find(r, tool+"/stream")
	var parts []float64
	for _, smp := range s.Counting() {
		parts = append(parts, smp.Metrics[sample.Throughput]/smp.Metrics[sample.FabricGoodput]-1)
	}
	if len(parts) == 0 {
		b.row(figure, target, "not measured: "+tool+" is not there", false)
		return
	}
	slices.Sort(parts)
	far := math.Abs(parts[len(parts)/2])
	if own {
		far = max(math.Abs(parts[0]), math.Abs(parts[len(parts)-1]))
	}
	b.row(figure, target, fmt.Sprintf("%.2f %%", 100*far), far <= limit)
}

// ratio prints the paired ratio of a comparison. A target is missed if the whole
// interval is on the wrong side of 1.
func (b *session) ratio(r *model.Report, subject, baseline string, m sample.Metric, what, target string, better int) {
	if c, ok := ratioOf(r, subject, baseline, m); ok {
		met := c.High >= 1
		if better < 0 {
			met = c.Low <= 1
		}
		b.row("built-in: "+what, target, formatRatio(c), met)
		return
	}
	b.row("built-in: "+what, target, "not measured: "+baseline+" is not there", false)
}
