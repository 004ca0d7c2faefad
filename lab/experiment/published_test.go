package experiment

import (
	"context"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
)

// The client connects to the node's address, which is not an address of the server's
// container. Both are containers of a real dockerd.
func TestPublishedPortsCarryAToolBetweenNodes(t *testing.T) {
	must.Long(t)
	n := &notebook{}
	must.Succeed(t, onThisMachine(t, n, system.DockerBridge{}).Run(context.Background()))
	s := n.samples[0]
	if !s.OK() {
		t.Fatal(s.Failure)
	}
	var client, server string
	for _, c := range s.Commands {
		line := strings.Join(c.Argv, " ")
		if c.Role == "client" {
			client = line
		} else {
			server = line
		}
	}
	if !strings.Contains(server, "-listen 10.31.") || strings.Contains(client, "10.31.") {
		t.Errorf("the server listens on its container's address, and the client connects to the node's:\n%s\n%s", server, client)
	}
	if bps := s.Metrics[sample.Throughput]; bps < pace/10 {
		t.Errorf("%.0f bit/s of a stream paced to %.0f", bps, float64(pace))
	}
	assertFabricAgrees(t, &s)
}

func TestPublishedPortsAreRefusedWhereTheyCannotCarryTheTraffic(t *testing.T) {
	for want, change := range map[string]func(*suite.Scenario){
		"over IPv4 only":           func(sc *suite.Scenario) { sc.Workload.IPVersion = 6 },
		"2 pairs":                  func(sc *suite.Scenario) { sc.Pairs = 2 },
		"behind published ports d": func(sc *suite.Scenario) { sc.Tool = "builtin-ntttcp" },
	} {
		sc := scenario("docker-bridge", change)
		if why := strings.Join(mustResolve(t, &sc).unsupported(), "; "); !strings.Contains(why, want) {
			t.Errorf("%q, want a reason with %q", why, want)
		}
		sc.Placement = suite.Colocated
		if why := mustResolve(t, &sc).unsupported(); len(why) > 0 {
			t.Errorf("on one node: %q", why)
		}
	}
	for _, tl := range []string{"builtin", "iperf3", "qperf"} {
		sc := scenario("docker-bridge", func(sc *suite.Scenario) { sc.Tool = tl })
		if why := mustResolve(t, &sc).unsupported(); len(why) > 0 {
			t.Errorf("%s with published ports is not supported: %q", tl, why)
		}
	}
}
