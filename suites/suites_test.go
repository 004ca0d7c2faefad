package suites

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/lab/suite"
)

var vocabulary = suite.Vocabulary{
	Systems: []string{"raw", "bridge", "vxlan", "macvlan", "vrouter-mpls-gre", "vrouter-mpls-udp", "vrouter-vxlan"},
	Tools:   []string{"builtin", "iperf3", "qperf", "netperf", "sockperf", "ntttcp"},
}

func plan(t *testing.T, name string) *suite.Plan {
	t.Helper()
	data, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := suite.Parse(name+".yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Expand(suite.ExpandOptions{Vocabulary: vocabulary})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEverySuiteIsCalledAsItsFileAndDescribed(t *testing.T) {
	want := []string{"aa", "agreement", "overlay", "quick-overlay", "quick", "steadiness", "tour"}
	if diff := cmp.Diff(want, Names()); diff != "" {
		t.Fatalf("names (-want +got):\n%s", diff)
	}
	for _, name := range Names() {
		p := plan(t, name)
		if p.Suite != name || p.Title == name || p.Description == "" {
			t.Errorf("%s.yaml: suite %q, title %q, description %q", name, p.Suite, p.Title, p.Description)
		}
	}
}

func TestSuitesExpandIntoTheirScenarios(t *testing.T) {
	for name, want := range map[string]struct {
		ids    []string
		pairs  []string
		trials int
	}{
		"quick": {
			ids: []string{
				"raw/stream", "raw/rr", "bridge/stream", "bridge/rr",
				"bridge-colocated/stream", "bridge-colocated/rr", "vxlan/stream", "vxlan/rr",
			},
			pairs: []string{
				"bridge/stream over raw/stream", "bridge/rr over raw/rr",
				"bridge-colocated/stream over bridge/stream", "bridge-colocated/rr over bridge/rr",
				"vxlan/stream over bridge/stream", "vxlan/rr over bridge/rr",
			},
			trials: 6,
		},
		"quick-overlay": {
			ids: []string{
				"bridge/stream", "bridge/rr", "vxlan/stream", "vxlan/rr",
				"vrouter-mpls-gre/stream", "vrouter-mpls-gre/rr", "vrouter-mpls-udp/stream", "vrouter-mpls-udp/rr",
				"vrouter-vxlan/stream", "vrouter-vxlan/rr", "bridge-colocated/stream", "vrouter-mpls-udp-colocated/stream",
			},
			pairs: []string{
				"vxlan/stream over bridge/stream", "vxlan/rr over bridge/rr",
				"vrouter-mpls-gre/stream over bridge/stream", "vrouter-mpls-gre/rr over bridge/rr",
				"vrouter-mpls-udp/stream over bridge/stream", "vrouter-mpls-udp/rr over bridge/rr",
				"vrouter-vxlan/stream over bridge/stream", "vrouter-vxlan/rr over bridge/rr",
				"vrouter-mpls-gre/stream over vxlan/stream", "vrouter-mpls-gre/rr over vxlan/rr",
				"vrouter-mpls-udp/stream over vxlan/stream", "vrouter-mpls-udp/rr over vxlan/rr",
				"vrouter-vxlan/stream over vxlan/stream", "vrouter-vxlan/rr over vxlan/rr",
				"vrouter-mpls-udp-colocated/stream over bridge-colocated/stream",
			},
			trials: 6,
		},
		"aa": {
			ids:    []string{"a/stream", "a/rr", "b/stream", "b/rr"},
			pairs:  []string{"b/stream over a/stream", "b/rr over a/rr"},
			trials: 10,
		},
		"steadiness": {
			ids: []string{
				"none/unlimited", "tcp/unlimited", "tunnel/unlimited", "none/paced", "tcp/paced", "tunnel/paced",
			},
			pairs: []string{
				"none/unlimited over tcp/unlimited", "none/paced over tcp/paced",
				"tunnel/unlimited over tcp/unlimited", "tunnel/paced over tcp/paced",
			},
			trials: 6,
		},
		"agreement": {
			ids:    []string{"builtin/stream", "iperf3/stream", "netperf/stream", "builtin/rr", "netperf/rr"},
			pairs:  []string{"builtin/stream over iperf3/stream", "builtin/stream over netperf/stream", "builtin/rr over netperf/rr"},
			trials: 6,
		},
		"tour": {
			ids: []string{
				"bridge/tcp_stream", "bridge/tcp_stream-reverse", "bridge/tcp_stream-both", "bridge/tcp_stream-sendfile",
				"bridge/tcp_stream-no_delay", "bridge/tcp_stream-4", "bridge/tcp_stream-ipv6",
				"bridge/tcp_rr", "bridge/tcp_crr", "bridge/udp_stream", "bridge/udp_rr",
			},
			pairs:  []string{"bridge/tcp_stream-ipv6 over bridge/tcp_stream"},
			trials: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, name)
			var ids, pairs []string
			for _, s := range p.Scenarios {
				ids = append(ids, s.ID)
			}
			for _, c := range p.Comparisons {
				pairs = append(pairs, c.Subject+" over "+c.Baseline)
			}
			if diff := cmp.Diff(want.ids, ids); diff != "" {
				t.Errorf("scenarios (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.pairs, pairs); diff != "" {
				t.Errorf("comparisons (-want +got):\n%s", diff)
			}
			if p.Trials != want.trials || p.Nodes != 2 {
				t.Errorf("%d trials on %d nodes, want %d on 2", p.Trials, p.Nodes, want.trials)
			}
		})
	}
}

func TestQuickMeasuresWhatItsTitleSaysWithinThreeMinutes(t *testing.T) {
	p := plan(t, "quick")
	wire := suite.Fabric{Name: "wire", Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1}
	stream := suite.Workload{Name: "stream", Kind: suite.TCPStream, Direction: suite.Forward, Streams: 1, Buffer: 131072, IPVersion: 4}
	rr := suite.Workload{Name: "rr", Kind: suite.TCPRR, Streams: 1, Request: 1, Response: 1, IPVersion: 4}
	for _, s := range p.Scenarios {
		workload, duration := stream, 2*time.Second
		if strings.HasSuffix(s.ID, "/rr") {
			workload, duration = rr, time.Second
		}
		placement := suite.TwoNodes
		if strings.HasPrefix(s.ID, "bridge-colocated/") {
			placement = suite.Colocated
		}
		if diff := cmp.Diff(wire, s.Fabric); diff != "" {
			t.Errorf("%s: fabric (-want +got):\n%s", s.ID, diff)
		}
		if diff := cmp.Diff(workload, s.Workload); diff != "" {
			t.Errorf("%s: workload (-want +got):\n%s", s.ID, diff)
		}
		if s.Timing.Duration != duration || s.Placement != placement || s.Tool != "builtin" || s.Pairs != 1 {
			t.Errorf("%s: duration %v, placement %s, tool %s, pairs %d", s.ID, s.Timing.Duration, s.Placement, s.Tool, s.Pairs)
		}
	}
	if e := p.Estimate(); e <= 0 || e >= 3*time.Minute {
		t.Errorf("estimated at %v, want less than 3 minutes", e)
	}
}

func TestSteadinessPacesTheSenderAndNotTheLink(t *testing.T) {
	for _, s := range plan(t, "steadiness").Scenarios {
		want := int64(0)
		if s.Workload.Name == "paced" {
			want = 4e9
		}
		if s.Workload.Rate != want || s.Fabric.Rate != 0 || s.Timing.Duration != 3*time.Second {
			t.Errorf("%s: workload at %d, link at %d bits/s for %v", s.ID, s.Workload.Rate, s.Fabric.Rate, s.Timing.Duration)
		}
		if string(s.Fabric.Offload) != s.Fabric.Name {
			t.Errorf("%s: offload %s", s.ID, s.Fabric.Offload)
		}
	}
}

func TestTourHasEveryKindDirectionAndIPVersion(t *testing.T) {
	seen := map[any]bool{}
	for _, s := range plan(t, "tour").Scenarios {
		seen[s.Workload.Kind], seen[s.Workload.Direction], seen[s.Workload.IPVersion] = true, true, true
		if s.Timing.Duration != time.Second {
			t.Errorf("%s takes %v", s.ID, s.Timing.Duration)
		}
	}
	for _, want := range []any{
		suite.TCPStream, suite.TCPRR, suite.TCPCRR, suite.UDPStream, suite.UDPRR,
		suite.Forward, suite.Reverse, suite.Both, 4, 6,
	} {
		if !seen[want] {
			t.Errorf("no scenario with %v", want)
		}
	}
}

func TestReadingAnUnknownSuiteListsTheKnown(t *testing.T) {
	for _, name := range []string{"quik", "", "../go.mod", "quick.yaml"} {
		_, err := Read(name)
		if err == nil || !strings.Contains(err.Error(), "aa, agreement, overlay, quick") {
			t.Errorf("Read(%q) gave %v; want an error that lists the suites", name, err)
		}
	}
}

func TestCommittedSchemaIsThatOfTheCode(t *testing.T) {
	committed, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, suite.Schema()) {
		t.Error("schema.json differs from the language; run go generate ./suites")
	}
}

func TestEverySuitePointsEditorsAtTheSchema(t *testing.T) {
	for _, name := range Names() {
		data, err := Read(name)
		if err != nil {
			t.Fatal(err)
		}
		first := strings.SplitN(string(data), "\n", 2)[0]
		if !slices.Contains(strings.Fields(first), "$schema=schema.json") {
			t.Errorf("%s.yaml: first line %q", name, first)
		}
	}
}
