package experiment

import (
	"testing"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// The queue of a link of 50 Mbit/s holds 256 KiB, which is 42 ms. Streams fill it, and each
// request waits in it. Requests on an idle link wait for no queue.
func TestRequestsWaitInTheQueueThatStreamsFill(t *testing.T) {
	rated := func(load int) suite.Scenario {
		return scenario("bridge", func(sc *suite.Scenario) {
			sc.Fabric.Rate = 50e6
			sc.Workload = suite.Workload{Name: "rr", Kind: suite.TCPRR, Streams: 1, Request: 1, Response: 1, IPVersion: 4}
			sc.Timing.Duration = 1200 * time.Millisecond
			if load > 0 {
				sc.Workload.Load, sc.Workload.Direction = load, suite.Forward
				sc.Timing.Warmup = 500 * time.Millisecond // the streams fill the queue
			}
		})
	}
	idle, loaded := runOK(t, rated(0)), runOK(t, rated(4))
	if _, ok := idle.Metrics[sample.LoadThroughput]; ok {
		t.Error("an idle link has a load")
	}
	if load := loaded.Metrics[sample.LoadThroughput]; load < 30e6 || load > 50e6 {
		t.Errorf("the streams beside the requests carry %.1f Mbit/s of the link's 50", load/1e6)
	}
	// Another program can delay single requests of the idle link.
	for m, factor := range map[sample.Metric]float64{sample.LatencyP50: 10, sample.LatencyP999: 1} {
		if before, after := idle.Metrics[m], loaded.Metrics[m]; before <= 0 || after < factor*before || after < 20e6 {
			t.Errorf("%s is %.2f ms idle and %.2f ms under load; the queue takes more than 20 ms", m, before/1e6, after/1e6)
		}
	}
	if p50 := loaded.Metrics[sample.LatencyP50]; p50 > 100e6 {
		t.Errorf("the median is %.2f ms under load, but the queue holds only 42 ms", p50/1e6)
	}
	for name, s := range map[string]sample.Sample{"idle": idle, "loaded": loaded} {
		inside, with, longest := 0, 0, 0.0
		for _, p := range s.Series {
			if p.At <= 0 || p.At > s.Metrics[sample.WindowSeconds] {
				continue
			}
			inside++
			if p.Latency > 0 {
				with++
			}
			longest = max(longest, p.LatencyMax)
		}
		// A round trip of the loaded link can last longer than a point of the series.
		if inside < 10 || with == 0 || name == "idle" && with < inside*9/10 {
			t.Errorf("%s: %d of %d points of the series have a latency", name, with, inside)
		}
		if longest < 0.5*s.Metrics[sample.LatencyP50] {
			t.Errorf("%s: the longest round trip of the series is %.2f ms, the median %.2f ms", name, longest/1e6, s.Metrics[sample.LatencyP50]/1e6)
		}
	}
}
