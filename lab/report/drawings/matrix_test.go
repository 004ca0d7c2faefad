package drawings

import (
	"fmt"
	"strings"
	"testing"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestThePageHasTheMatrixWithItsColours(t *testing.T) {
	r := reporttest.Quick()
	for i, system := range []string{"bridge", "a", "b", "c"} {
		for _, size := range []string{"64", "256", "1024"} {
			id := fmt.Sprintf("%s/udp-%s", system, size)
			r.Scenarios = append(r.Scenarios, model.Scenario{
				ID: id, System: system, Workload: suite.Workload{Name: "udp-" + size, Kind: suite.UDPStream}, Trials: 6,
				Metrics: map[sample.Metric]quantity.Interval{sample.DatagramsReceived: *interval(5e5, 0)},
			})
			if i > 0 {
				r.Comparisons = append(r.Comparisons, model.Comparison{
					Subject: id, Baseline: "bridge/udp-" + size, Metric: sample.Throughput, Ratio: *interval(0.4, 0.01), Verdict: model.Differs,
				})
			}
		}
	}
	page := string(written(t, r))
	for _, want := range []string{`>Datagrams received in k/s, and the ratio to bridge</h2>`, `<td class="n worse3">500<br><small>(0.400)</small></td>`, `<span class="shade worse1">`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestATrialHasItsRoundTripsOverTime(t *testing.T) {
	s := &sample.Sample{Series: []sample.Point{{At: 0.1, Latency: 12345, LatencyMax: 99999}, {At: 0.2}}}
	got := timeSeries(s, true)
	if len(got.Latency) != 2 || fmt.Sprint(got.Latency) != "[[12300 0] [100000 0]]" {
		t.Errorf("latency over time is %v", got.Latency)
	}
	if stream := timeSeries(&sample.Sample{Series: []sample.Point{{At: 0.1, Bits: 1}}}, true); stream.Latency != nil {
		t.Errorf("a stream has latency %v", stream.Latency)
	}
	thinned := steps([]sample.Point{{Latency: 10, LatencyMax: 30}, {}, {Latency: 20, LatencyMax: 20}, {}}, 2)
	if thinned[0].Latency != 10 || thinned[0].LatencyMax != 30 || thinned[1].Latency != 20 {
		t.Errorf("thinned points are %+v; the mean is of points with transactions", thinned)
	}
}
