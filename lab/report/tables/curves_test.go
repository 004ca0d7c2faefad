package tables

import (
	"fmt"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// streams returns the scenarios of a group with these numbers of connections.
func streams(group string, numbers ...int) (list []model.Scenario) {
	for _, n := range numbers {
		list = append(list, model.Scenario{
			ID: fmt.Sprintf("%s/streams-%d", group, n), Pairs: 1, Tool: "builtin", Placement: "two-nodes",
			Workload:   suite.Workload{Name: fmt.Sprintf("streams-%d", n), Kind: suite.TCPStream, Streams: n, Buffer: 131072, IPVersion: 4},
			Throughput: &quantity.Interval{Median: 1e9 * float64(n), Low: 1e9, High: 64e9},
		})
	}
	return list
}

func TestScenariosThatDifferInOneNumberMakeACurve(t *testing.T) {
	r := &model.Report{Scenarios: append(streams("bridge", 4, 1, 16), streams("vxlan", 1, 4, 16, 64)...)}
	r.Scenarios[3].Throughput = nil // not measured
	list := Curves(r)
	must.Equal(t, 1, len(list))
	c := list[0]
	must.Equal(t, "connections", c.Property)
	must.Equal(t, sample.Throughput, c.Metric)
	must.Equal(t, []string{"1", "4", "16", "64"}, c.Values)
	must.Equal(t, 2, len(c.Lines))
	must.Equal(t, "bridge/streams-1", c.Lines[0].Scenarios[0].ID)
	if c.Lines[0].Scenarios[3] != nil || c.Lines[1].Scenarios[0] != nil {
		t.Error("a scenario that was not measured is on the curve")
	}
	must.Equal(t, 6, len(c.Rows()))
}

func TestOtherScenariosMakeNoCurve(t *testing.T) {
	two := streams("bridge", 1, 4)
	apart := streams("bridge", 1, 4, 16)
	apart[1].Workload.IPVersion = 6
	links := streams("bridge", 1, 4, 16)
	links[1].Fabric.Rate = 1e9
	guests := streams("bridge", 1, 4, 16)
	guests[2].Endpoint.Kind = suite.VM
	for name, list := range map[string][]model.Scenario{"two values": two, "another difference": apart, "another link": links, "another endpoint": guests, "none": nil} {
		if got := Curves(&model.Report{Scenarios: list}); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestTheLatencyShowsTheEffectOfALoad(t *testing.T) {
	var r model.Report
	for _, share := range []float64{0.1, 0.5, 0.9} {
		r.Scenarios = append(r.Scenarios, model.Scenario{
			ID: fmt.Sprintf("bridge/%v", share), Workload: suite.Workload{Kind: suite.TCPRR, Streams: 1, Request: 1, Response: 1, OfCapacity: share},
			Metrics: map[sample.Metric]quantity.Interval{sample.LatencyP99: {Median: 1e5, Low: 1e5, High: 1e5}},
		})
	}
	list := Curves(&r)
	must.Equal(t, 1, len(list))
	must.Equal(t, sample.LatencyP99, list[0].Metric)
	must.Equal(t, []string{"10 %", "50 %", "90 %"}, list[0].Values)
}
