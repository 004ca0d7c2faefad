package tool

import (
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

func TestToolsWithWholeSecondsRunLonger(t *testing.T) {
	plan := &suite.Plan{}
	for _, name := range Names() {
		plan.Scenarios = append(plan.Scenarios, suite.Scenario{ID: name, Tool: name,
			Timing: suite.Timing{Warmup: 200 * time.Millisecond, Duration: 1500 * time.Millisecond, Cooldown: 100 * time.Millisecond}})
	}
	want := map[string]time.Duration{
		"iperf3": 2 * time.Second, "netperf": 2 * time.Second, "qperf": 2 * time.Second, "sockperf": 4 * time.Second,
		NTttcp{}.Name(): 4 * time.Second, BuiltinNTttcp{}.Name(): 4 * time.Second,
	}
	must.Equal(t, want, Traffic(plan))
}
