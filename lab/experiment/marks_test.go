package experiment

import (
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/program"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// A bridge sends the workload's packets as they are, the kernel's VXLAN device hides their
// DSCP, and vrouter copies it into the outer header.
func TestTheWireReadsTheDSCP(t *testing.T) {
	bothWays := func(sc *suite.Scenario) { requests(suite.UDPRR)(&sc.Workload) }
	over6 := func(sc *suite.Scenario) { bothWays(sc); sc.Workload.IPVersion = 6 }
	checkDSCP(t, "bridge over IPv6", scenario("bridge", over6), 1)
	checkDSCP(t, "vxlan", scenario("vxlan", bothWays), 0)
	checkDSCP(t, "vrouter", scenario("vrouter-vxlan", bothWays), 1)
}

// Each tool that accepts a DSCP marks the packets of both ends.
func TestTheToolsMarkTheirPackets(t *testing.T) {
	must.Long(t)
	for _, c := range []struct {
		name, tool string
		change     func(*suite.Workload)
	}{
		{"datagrams", "builtin", func(w *suite.Workload) { w.Kind, w.Buffer = suite.UDPStream, 1000 }},
		{"both ways over IPv6", "iperf3", func(w *suite.Workload) { w.Direction, w.IPVersion = suite.Both, 6 }},
		{"datagrams reverse", "iperf3", func(w *suite.Workload) { w.Kind, w.Direction, w.Buffer = suite.UDPStream, suite.Reverse, 1000 }},
		{"requests", "netperf", requests(suite.TCPRR)},
		{"datagram requests", "netperf", requests(suite.UDPRR)},
		{"requests", "sockperf", requests(suite.TCPRR)},
		{"datagram requests", "sockperf", requests(suite.UDPRR)},
	} {
		sc := scenario("bridge", func(sc *suite.Scenario) {
			sc.Tool, sc.Timing.Duration = c.tool, 1500*time.Millisecond
			c.change(&sc.Workload)
		})
		checkDSCP(t, c.tool+" "+c.name, sc, 1)
	}
}

// requests makes a workload of request/response. Their messages are large, so that neighbour
// discovery is a small part of the bytes.
func requests(kind suite.Kind) func(*suite.Workload) {
	return func(w *suite.Workload) {
		w.Kind, w.Direction, w.Rate, w.Buffer, w.Request, w.Response = kind, "", 0, 0, 1000, 1000
	}
}

// checkDSCP runs a scenario with a DSCP. share is the share of the bytes that shall have it: 0
// or 1. A program that is not installed skips the subtest.
func checkDSCP(t *testing.T, name string, sc suite.Scenario, share float64) {
	t.Run(name, func(t *testing.T) {
		if _, err := program.Beside("vrouter"); err != nil && strings.HasPrefix(sc.System, "vrouter") {
			t.Skip(err)
		}
		for _, p := range mustResolve(t, &sc).tool.Programs() {
			if _, err := exec.LookPath(p.Name); err != nil {
				t.Skipf("%s is not installed; get it with: %s", p.Name, p.Remedy())
			}
		}
		sc.Workload.DSCP = 46
		s := runOK(t, sc)
		got, read := s.Metrics[sample.DSCPShare]
		flagged := slices.ContainsFunc(s.Flags, func(g sample.Gate) bool { return g.Name == sample.WrongDSCP })
		if !read || math.Abs(got-share) > 0.05 || flagged != (share == 0) {
			t.Errorf("%.4f of the bytes have the DSCP (read: %v), flagged %v; want %.0f", got, read, flagged, share)
		}
	})
}

// If data flows in one direction, only the sender's frames count, because some tools do not mark acknowledgements.
func TestOnlyNodesThatSendDataCountForTheDSCP(t *testing.T) {
	const ef, default0 = 46, 0
	sender, receiver := testbed.Marks{ef: 900, default0: 100}, testbed.Marks{default0: 1000}
	for _, c := range []struct {
		kind      suite.Kind
		direction suite.Direction
		want      float64
	}{
		{suite.TCPStream, suite.Forward, 0.9}, {suite.UDPStream, suite.Reverse, 0}, {suite.TCPStream, suite.Both, 0.45},
		{suite.TCPRR, "", 0.45}, {suite.TCPRR, suite.Forward, 0.45}, // of a request/response, this is the direction of the load beside it
	} {
		got, ok := dscpShare(suite.Workload{Kind: c.kind, Direction: c.direction, DSCP: ef}, sender, receiver)
		if got != c.want || !ok {
			t.Errorf("%s %s: %v (%v), want %v", c.kind, c.direction, got, ok, c.want)
		}
	}
	if _, ok := dscpShare(suite.Workload{Kind: suite.TCPStream, DSCP: ef}, testbed.Marks{}, receiver); ok {
		t.Error("a share of no bytes")
	}
}

// On a fabric without a wire, a warning says that the DSCP was not checked.
func TestAFabricThatDoesNotReadTheDSCPSaysSo(t *testing.T) {
	s := runOK(t, scenario("bridge", func(sc *suite.Scenario) {
		requests(suite.UDPRR)(&sc.Workload)
		sc.Workload.DSCP, sc.Fabric.Kind = 46, suite.Veth
	}))
	if share, read := s.Metrics[sample.DSCPShare]; read || !slices.ContainsFunc(s.Warnings, func(w string) bool {
		return w == "not checked: dscp: nothing reads the DSCP of the frames: the fabric is not a wire, or both endpoints are on one node"
	}) {
		t.Errorf("a share of %v (read: %v) with the warnings %q", share, read, s.Warnings)
	}
}
