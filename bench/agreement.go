package main

import (
	"fmt"
	"math"

	"windtunnel/lab/report"
	"windtunnel/lab/sample"
)

// agreement: the built-in generator beside iperf3 and netperf, and beside the
// fabric's own counters.
func (b *bench) agreement() error {
	r, err := b.suite("agreement", "--trials", "10")
	if err != nil {
		return err
	}
	for _, other := range []string{"iperf3", "netperf"} {
		b.ratio(r, "builtin/stream", other+"/stream", sample.Throughput, "throughput of "+other+"'s", "≥ 1", +1)
		b.ratio(r, "builtin/stream", other+"/stream", sample.SenderCPUPerByte, "sender CPU per byte of "+other+"'s", "≤ 1", -1)
		b.ratio(r, "builtin/stream", other+"/stream", sample.ReceiverCPUPerByte, "receiver CPU per byte of "+other+"'s", "≤ 1", -1)
	}
	b.ratio(r, "builtin/rr", "netperf/rr", sample.Transactions, "TCP_RR transactions of netperf's", "≥ 1", +1)
	s, ok := find(r, "builtin/stream")
	if !ok {
		return fmt.Errorf("builtin/stream yielded nothing")
	}
	worst := 0.0
	for _, smp := range s.Samples {
		if smp.OK() {
			worst = max(worst, math.Abs(smp.Metrics[sample.FabricGoodput]/smp.Metrics[sample.Throughput]-1))
		}
	}
	b.row("throughput against the fabric's byte counters less headers: farthest trial", "≤ 1 %", fmt.Sprintf("%.2f %%", 100*worst), worst <= 0.01)
	return nil
}

// ratio prints the paired ratio of a comparison. A target is met where the
// interval does not lie wholly on the wrong side of 1.
func (b *bench) ratio(r *report.Report, subject, baseline string, m sample.Metric, what, target string, better int) {
	if c, ok := ratioOf(r, subject, baseline, m); ok {
		met := c.High >= 1
		if better < 0 {
			met = c.Low <= 1
		}
		b.row("built-in: "+what, target, shown(c), met)
		return
	}
	b.row("built-in: "+what, target, "not measured: "+baseline+" is not there", false)
}
