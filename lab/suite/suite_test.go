package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
)

// small is a suite that tests add to.
const small = `suite: small
workloads:
  stream: {kind: tcp_stream}
  rr: {kind: tcp_rr}
scenarios:
  - system: [raw, bridge]
    workload: [stream, rr]
`

func mustParse(t *testing.T, text string) *Suite {
	t.Helper()
	s, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse:\n%v\nof:\n%s", err, text)
	}
	return s
}

func mustExpand(t *testing.T, text string, opts ExpandOptions) *Plan {
	t.Helper()
	p, err := mustParse(t, text).Expand(opts)
	if err != nil {
		t.Fatalf("Expand: %v", err)
	}
	return p
}

func ids(p *Plan) string {
	var out []string
	for _, s := range p.Scenarios {
		out = append(out, s.ID)
	}
	return strings.Join(out, " ")
}

func pairs(p *Plan) string {
	var out []string
	for _, c := range p.Comparisons {
		out = append(out, c.Subject+"<"+c.Baseline)
	}
	return strings.Join(out, " ")
}

func TestAPlanLeavesNothingToDefault(t *testing.T) {
	p := mustExpand(t, "suite: s\nworkloads: {stream: {kind: tcp_stream}}\nscenarios: [{system: bridge}]\n", ExpandOptions{})
	want := &Plan{
		Suite: "s", Title: "s", Nodes: 2, Trials: 6,
		Scenarios: []Scenario{{
			ID: "bridge/stream", Title: "bridge: TCP stream of 128 KiB",
			System: "bridge", Placement: TwoNodes, Pairs: 1, Tool: "builtin",
			Workload: Workload{Name: "stream", Kind: TCPStream, Direction: Forward, Streams: 1, Buffer: 131072, IPVersion: 4},
			Fabric:   Fabric{Name: "default", Kind: Wire, MTU: 1500, Offload: OffloadTCP, Queues: 1, Links: 1},
			Timing:   Timing{500 * time.Millisecond, 2 * time.Second, 200 * time.Millisecond},
		}},
	}
	must.Equal(t, want, p)
}

func TestCoalescingFollowsTheTraffic(t *testing.T) {
	for k, streams := range map[Kind]bool{TCPStream: true, UDPStream: true, TCPRR: false, TCPCRR: false, UDPRR: false} {
		for kind, want := range map[FabricKind]bool{Wire: streams, Veth: true} { // a veth pair has no NIC to set
			p := mustExpand(t, fmt.Sprintf("suite: s\nfabrics: {f: {kind: %s}}\nworkloads: {w: {kind: %s}}\nscenarios: [{system: raw}]\n", kind, k), ExpandOptions{})
			f := p.Scenarios[0].Fabric
			if f.NoCoalescing == want {
				t.Errorf("%s, %s: NoCoalescing is %v", kind, k, f.NoCoalescing)
			}
			if named := strings.Contains(f.String(), "no coalescing"); named != f.NoCoalescing {
				t.Errorf("%s, %s: described as %q", kind, k, f)
			}
		}
	}
}

func TestAnExistingNetworkKeepsItsOffloadsUnlessTheSuiteSetsThem(t *testing.T) {
	for keys, want := range map[string]string{
		"kind: existing":                "existing, MTU 1500",
		"kind: existing, offload: none": "existing, MTU 1500, offload none",
		"kind: wire":                    "wire, MTU 1500, offload tcp",
	} {
		p := mustExpand(t, with("fabrics: {f: {"+keys+"}}"), ExpandOptions{})
		if got := p.Scenarios[0].Fabric.String(); got != want {
			t.Errorf("%s: the fabric is %q, want %q", keys, got, want)
		}
	}
}

func TestATestbedOfHostsReplacesTheEmulatedFabrics(t *testing.T) {
	for keys, want := range map[string]string{
		"rate: 1G":                        "existing, MTU 1500, 1 Gbit/s",
		"offload: tcp":                    "existing, MTU 1500, offload tcp",
		"kind: existing":                  "existing, MTU 1500",
		"kind: existing, offload: tunnel": "existing, MTU 1500, offload tunnel",
	} {
		p := mustExpand(t, with("fabrics: {f: {"+keys+"}}"), ExpandOptions{})
		p.UseExistingNetwork()
		p.UseExistingNetwork() // as a resumed run does
		for _, sc := range p.Scenarios {
			if got := sc.Fabric.String(); got != want || sc.Fabric.NoCoalescing {
				t.Errorf("%s: %s: the fabric is %q, want %q", keys, sc.ID, got, want)
			}
		}
	}
}

func TestEveryKeyReachesThePlan(t *testing.T) {
	p := mustExpand(t, `
suite: all
title: A title
description: A description
nodes: 3
trials: 7
tool: iperf3
timing: {warmup: 1s, duration: 3s, cooldown: 300ms}
fabrics:
  fast: {kind: wire, mtu: 9000, offload: tunnel, rate: 2.5Gbit, delay: 200us, cpus: 8, cpu_share: 12.5%, pinned: false, queues: 4, links: 2}
workloads:
  up:
    kind: tcp_stream
    direction: both
    threads: 8
    buffer: 64K
    send_buffer: 1M
    receive_buffer: 2M
    no_delay: true
    sendfile: true
    rate: 4Gbit/s
    ip_version: 6
    timing: {duration: 4s}
  ask: {kind: udp_rr, request: 100, response: 1k, timing: {duration: 5s, warmup: 0}}
scenarios:
  - id: x/{workload}
    title: "{system} {placement} {workload} {fabric} {tool}"
    system: bridge
    placement: colocated
    workload: [up, ask]
    fabric: fast
    tool: netperf
    pairs: 5
    timing: {cooldown: 1s}
  - {id: y, title: Y, system: raw, workload: up, fabric: fast}
comparisons: [{title: T, baseline: x/up, subject: y}]
published:
  - {scenario: x/up, metric: throughput_bps, value: 7375.159 Mbit/s, source: a table, note: low}
  - {scenario: x/up, metric: sender_cpu_percent, value: 14.799 %, source: a table}
  - {scenario: x/ask, metric: transactions_per_s, value: 11050 1/s, source: a table}
notes: [one, two]
`, ExpandOptions{})
	up := Workload{
		Name: "up", Kind: TCPStream, Direction: Both, Streams: 8, Buffer: 65536, SendBuffer: 1 << 20, ReceiveBuffer: 2 << 20,
		NoDelay: true, Sendfile: true, Rate: 4e9, IPVersion: 6,
	}
	ask := Workload{Name: "ask", Kind: UDPRR, Streams: 1, Request: 100, Response: 1024, IPVersion: 4}
	fast := Fabric{Name: "fast", Kind: Wire, MTU: 9000, Offload: OffloadTunnel, Rate: 25e8, Delay: 200 * time.Microsecond, CPUs: 8, CPUShare: 0.125, Unpinned: true, Queues: 4, Links: 2}
	quiet := fast
	quiet.NoCoalescing = true // request/response
	want := &Plan{
		Suite: "all", Title: "A title", Description: "A description", Nodes: 3, Trials: 7,
		Scenarios: []Scenario{
			{ID: "x/up", Title: "bridge colocated up fast netperf", System: "bridge", Placement: Colocated, Pairs: 5, Workload: up, Tool: "netperf", Fabric: fast, OffloadSet: true, Timing: Timing{time.Second, 4 * time.Second, time.Second}},
			{ID: "x/ask", Title: "bridge colocated ask fast netperf", System: "bridge", Placement: Colocated, Pairs: 5, Workload: ask, Tool: "netperf", Fabric: quiet, OffloadSet: true, Timing: Timing{0, 5 * time.Second, time.Second}},
			{ID: "y", Title: "Y", System: "raw", Placement: TwoNodes, Pairs: 1, Workload: up, Tool: "iperf3", Fabric: fast, OffloadSet: true, Timing: Timing{time.Second, 4 * time.Second, 300 * time.Millisecond}},
		},
		Comparisons: []Comparison{{Title: "T", Baseline: "x/up", Subject: "y"}},
		Published: []Published{
			{Scenario: "x/up", Metric: "throughput_bps", Value: 7375159000, Printed: "7375.159 Mbit/s", Step: 1000, Unit: "Mbit/s", Factor: 1e6, Source: "a table", Note: "low"},
			{Scenario: "x/up", Metric: "sender_cpu_percent", Value: 14.799, Printed: "14.799 %", Step: 0.001, Unit: "%", Factor: 1, Source: "a table"},
			{Scenario: "x/ask", Metric: "transactions_per_s", Value: 11050, Printed: "11050 1/s", Step: 1, Unit: "1/s", Factor: 1, Source: "a table"},
		},
		Notes: []string{"one", "two"},
	}
	must.Equal(t, want, p)
}

func TestListsAreCrossedAndIDsNameTheirValues(t *testing.T) {
	head := `suite: s
fabrics: {a: {mtu: 1500}, b: {mtu: 9000}}
workloads: {st: {kind: tcp_stream}, rr: {kind: tcp_rr}}
scenarios:
`
	for entry, want := range map[string]string{
		"  - {system: raw, workload: st, fabric: a}\n":                                                               "raw/st",
		"  - {system: [raw, bridge], workload: [st, rr], fabric: a}\n":                                               "raw/st raw/rr bridge/st bridge/rr",
		"  - {system: raw, placement: [two-nodes, colocated, gateway], workload: st, fabric: b}\n":                   "raw/st raw-colocated/st raw-gateway/st",
		"  - {system: raw, workload: st, fabric: [b, a]}\n":                                                          "raw/st-b raw/st-a",
		"  - {system: raw, workload: st, fabric: [a, b], tool: [x, y]}\n":                                            "raw/st-a-x raw/st-a-y raw/st-b-x raw/st-b-y",
		"  - {id: '{tool}-{fabric}/{workload}', system: raw, workload: st, fabric: b, tool: [x, y]}":                 "x-b/st y-b/st",
		"  - {id: '{placement}/{system}', system: raw, workload: st, fabric: b}\n":                                   "two-nodes/raw",
		"  - {id: plain, system: raw, workload: st, fabric: b}\n":                                                    "plain",
		"  - {id: a/1, system: raw, workload: st, fabric: a}\n  - {id: a/2, system: raw, workload: st, fabric: a}\n": "a/1 a/2",
	} {
		if got := ids(mustExpand(t, head+entry, ExpandOptions{})); got != want {
			t.Errorf("%s: ids %q, want %q", strings.TrimSpace(entry), got, want)
		}
	}
}

func TestGroupsAreComparedPartByPart(t *testing.T) {
	for comparison, want := range map[string]string{
		"{baseline: raw, subjects: bridge}":                                      "bridge/stream<raw/stream bridge/rr<raw/rr",
		"{baseline: raw/rr, subject: bridge/rr}":                                 "bridge/rr<raw/rr",
		"{baseline: raw/rr, subjects: [bridge/rr, alone]}":                       "bridge/rr<raw/rr alone<raw/rr",
		"{baseline: raw, subjects: [only]}":                                      "only/stream<raw/stream",
		"{baseline: raw/rr, subject: alone}":                                     "alone<raw/rr",
		"{baseline: raw, subject: only}\n  - {baseline: raw/rr, subject: alone}": "only/stream<raw/stream alone<raw/rr",
	} {
		text := small + "  - {id: only/stream, system: x, workload: stream}\n  - {id: alone, system: x, workload: rr}\ncomparisons:\n  - " + comparison + "\n"
		if got := pairs(mustExpand(t, text, ExpandOptions{})); got != want {
			t.Errorf("%s: %q, want %q", comparison, got, want)
		}
	}
}

func TestFiltersKeepScenariosAndWhatRefersToThem(t *testing.T) {
	text := small + `comparisons: [{baseline: raw, subject: bridge}]
published: [{scenario: raw/stream, metric: throughput_bps, value: 1 Gbit/s, source: x}]
`
	for filter, want := range map[string]struct {
		ids, pairs string
		published  int
	}{
		"":                    {"raw/stream raw/rr bridge/stream bridge/rr", "bridge/stream<raw/stream bridge/rr<raw/rr", 1},
		"raw":                 {"raw/stream raw/rr", "", 1},
		"raw/rr bridge/rr":    {"raw/rr bridge/rr", "bridge/rr<raw/rr", 0},
		"bridge/rr raw/rr":    {"raw/rr bridge/rr", "bridge/rr<raw/rr", 0},
		"*/stream":            {"raw/stream bridge/stream", "bridge/stream<raw/stream", 1},
		"b*":                  {"bridge/stream bridge/rr", "", 0},
		"[rb]*/rr raw/strea?": {"raw/stream raw/rr bridge/rr", "bridge/rr<raw/rr", 1},
	} {
		p := mustExpand(t, text, ExpandOptions{Scenarios: strings.Fields(filter)})
		if ids(p) != want.ids || pairs(p) != want.pairs || len(p.Published) != want.published {
			t.Errorf("%q: scenarios %q, comparisons %q, %d published; want %+v", filter, ids(p), pairs(p), len(p.Published), want)
		}
	}
}

func TestTheTitleNamesTheChosenScenarios(t *testing.T) {
	whole := mustExpand(t, small, ExpandOptions{}).Title
	for filter, want := range map[string]string{
		"raw/stream": whole + " (only raw/stream)", "b* raw/rr": whole + " (only b*, raw/rr)", "raw bridge": whole,
	} {
		if got := mustExpand(t, small, ExpandOptions{Scenarios: strings.Fields(filter)}).Title; got != want {
			t.Errorf("%q: %q, want %q", filter, got, want)
		}
	}
}

func TestAFilterThatMatchesNothingIsAnErrorThatListsTheIds(t *testing.T) {
	s := mustParse(t, small)
	for filters, says := range map[string]string{
		"brigde":     `there is no scenario "brigde"; did you mean "bridge"? scenarios: raw/stream, raw/rr, bridge/stream, bridge/rr`,
		"raw nope/*": `there is no scenario "nope/*"`,
		"[":          `the scenario pattern "[" cannot be read (syntax error in pattern)`,
		"raw/":       `there is no scenario "raw/"`,
	} {
		_, err := s.Expand(ExpandOptions{Scenarios: strings.Fields(filters)})
		must.Fail(t, err, says)
	}
}

func TestOptionsReplaceToolDurationAndTrials(t *testing.T) {
	s := mustParse(t, `suite: s
workloads: {st: {kind: tcp_stream, timing: {duration: 9s, warmup: 1s}}, udp: {kind: udp_stream}}
scenarios:
  - {id: "{tool}/{workload}", system: bridge, workload: st, tool: [builtin, iperf3]}
  - {system: bridge, workload: udp}
comparisons: [{baseline: iperf3, subject: builtin}, {baseline: iperf3/st, subject: bridge/udp}]
published: [{scenario: iperf3/st, metric: throughput_bps, value: 1 Gbit/s, source: x}]
`)
	p, err := s.Expand(ExpandOptions{Tool: "netperf", Duration: 3 * time.Second, Trials: 2})
	must.Succeed(t, err)
	if ids(p) != "netperf/st bridge/udp" || p.Trials != 2 || len(p.Comparisons) != 0 || len(p.Published) != 0 {
		t.Errorf("scenarios %q, %d trials, comparisons %q, %d published", ids(p), p.Trials, pairs(p), len(p.Published))
	}
	for _, sc := range p.Scenarios {
		if sc.Tool != "netperf" || sc.Timing.Duration != 3*time.Second {
			t.Errorf("%s: tool %s, duration %v", sc.ID, sc.Tool, sc.Timing.Duration)
		}
	}
	if w := p.Scenarios[0].Timing.Warmup; w != time.Second {
		t.Errorf("warmup %v, want the workload's 1s", w)
	}
	again, err := s.Expand(ExpandOptions{})
	if err != nil || ids(again) != "builtin/st iperf3/st bridge/udp" || again.Trials != 6 || again.Scenarios[0].Timing.Duration != 9*time.Second {
		t.Errorf("a second expansion gave %q, %v: the first left its mark", ids(again), err)
	}
}

func TestOptionsOutOfBoundsAreRefused(t *testing.T) {
	s := mustParse(t, small)
	known := Vocabulary{Tools: []string{"builtin", "iperf3"}}
	for says, opts := range map[string]ExpandOptions{
		"--duration 1ms is out of bounds: choose 100ms":                                              {Duration: time.Millisecond},
		"--duration -1s is out of bounds":                                                            {Duration: -time.Second},
		"--trials -1 is out of bounds: choose 1 to 1000":                                             {Trials: -1},
		"--trials 1001 is out of bounds":                                                             {Trials: 1001},
		`--tool iperf: there is no tool of this name; did you mean "iperf3"? tools: builtin, iperf3`: {Tool: "iperf", Vocabulary: known},
	} {
		_, err := s.Expand(opts)
		must.Fail(t, err, says)
	}
}

func TestAReplacedToolThatMakesTwoScenariosOneIsRefused(t *testing.T) {
	s := mustParse(t, `suite: s
workloads: {st: {kind: tcp_stream}}
scenarios:
  - {id: "{tool}/st", system: bridge, tool: builtin}
  - {id: "{tool}/st", system: bridge, tool: iperf3}
`)
	_, err := s.Expand(ExpandOptions{Tool: "netperf"})
	must.Fail(t, err, `with tool netperf two scenarios have the id "netperf/st"`)
}

func TestEncapsulationsOfASystemAreSystemsOfTheirOwn(t *testing.T) {
	text := "suite: s\nworkloads: {st: {kind: tcp_stream}}\nscenarios:\n  - system: vrouter\n    encap: [mpls-gre, vxlan]\n"
	p, err := mustParse(t, text).Expand(ExpandOptions{Vocabulary: Vocabulary{Systems: []string{"vrouter-mpls-gre", "vrouter-vxlan"}}})
	must.Succeed(t, err)
	if len(p.Scenarios) != 2 || p.Scenarios[0].ID != "vrouter-mpls-gre/st" || p.Scenarios[1].System != "vrouter-vxlan" {
		t.Errorf("the scenarios are %+v, want vrouter-mpls-gre and vrouter-vxlan", p.Scenarios)
	}
	_, err = mustParse(t, text).Expand(ExpandOptions{Vocabulary: Vocabulary{Systems: []string{"vrouter-mpls-gre"}}})
	if err == nil || !strings.HasPrefix(err.Error(), `test.yaml:5:23: there is no system "vrouter-vxlan"`) {
		t.Errorf("an encapsulation that the system lacks: %v", err)
	}
}

func TestSystemsAndToolsOutsideTheVocabularyAreErrorsWithTheirPlace(t *testing.T) {
	s := mustParse(t, "suite: s\ntool: buildin\nworkloads: {st: {kind: tcp_stream}}\nscenarios:\n  - system: [raw, brige]\n    tool: [iperf3, iperf2]\n")
	_, err := s.Expand(ExpandOptions{Vocabulary: Vocabulary{Systems: []string{"raw", "bridge"}, Tools: []string{"builtin", "iperf3"}}})
	want := `test.yaml:2:7: there is no tool "buildin"
     2 | tool: buildin
       |       ^
  did you mean "builtin"? tools: builtin, iperf3
test.yaml:5:19: there is no system "brige"
     5 |   - system: [raw, brige]
       |                   ^
  did you mean "bridge"? systems: raw, bridge
test.yaml:6:20: there is no tool "iperf2"
     6 |     tool: [iperf3, iperf2]
       |                    ^
  did you mean "iperf3"? tools: builtin, iperf3`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	// The comparison has the right name, so the error must not be there.
	_, err = ParseFor("test.yaml", []byte(strings.Replace(small, "bridge", "maclan", 1)+"comparisons: [{baseline: raw, subject: macvlan}]\n"), ExpandOptions{Vocabulary: Vocabulary{Systems: []string{"raw", "bridge", "macvlan"}}})
	want = `test.yaml:6:19: there is no system "maclan"
     6 |   - system: [raw, maclan]
       |                   ^
  did you mean "macvlan"? systems: raw, bridge, macvlan`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	if _, err := s.Expand(ExpandOptions{}); err != nil {
		t.Errorf("without a vocabulary: %v", err)
	}
}

func TestEstimateCountsTrafficAndOverheadOfEveryTrial(t *testing.T) {
	p := mustExpand(t, small+"trials: 10\ntiming: {warmup: 300ms, duration: 1s, cooldown: 100ms}\n", ExpandOptions{})
	// 4 scenarios × 10 trials × (1.4 s of traffic + 0.4 s around it)
	if got, want := p.Estimate(), 72*time.Second; got != want {
		t.Errorf("Estimate is %v, want %v", got, want)
	}
	// (4 scenarios × 10 trials + 30 repeats) × (1.4 s + 15 s)
	if got, want := p.WorstCase(), 1148*time.Second; got != want {
		t.Errorf("WorstCase is %v, want %v", got, want)
	}
	for i := range p.Scenarios {
		p.Scenarios[i].Timing.Duration = mostDuration
	}
	p.Trials = 1 << 40
	if got := p.Estimate(); got <= 0 {
		t.Errorf("an estimate beyond 292 years is %v", got)
	}
}

func TestRenderPrintsThePlanAsATable(t *testing.T) {
	p := mustExpand(t, `suite: s
title: A title
trials: 1
workloads: {st: {kind: tcp_stream, streams: 4, rate: 4Gbit, ip_version: 6}, rr: {kind: tcp_rr, response: 1k}}
fabrics: {slow: {rate: 1Gbit, queues: 2, links: 3, offload: none}}
scenarios: [{system: raw, workload: [st, rr]}, {system: bridge, placement: colocated, workload: st}]
comparisons: [{title: why, baseline: bridge-colocated/st, subject: raw/st}, {baseline: raw, subject: bridge-colocated}]
published: [{scenario: raw/st, metric: throughput_bps, value: 1 Gbit/s, source: a table}]
`, ExpandOptions{})
	want := `about 9.3 s, at worst 1m46s (if every set-up takes 15 s and 3 trials are repeated)
s: A title
3 scenarios × 1 trial on 2 nodes

SCENARIO             SYSTEM  PLACEMENT  PAIRS  TOOL     TRAFFIC                                                      FABRIC                                                      TRIAL
raw/st               raw     two-nodes  1      builtin  TCP stream of 128 KiB, 4 streams, at 4 Gbit/s, IPv6          wire, MTU 1500, offload none, 1 Gbit/s, 2 queues, 3 links  500ms + 2s + 200ms
raw/rr               raw     two-nodes  1      builtin  TCP request/response 1 B / 1 KiB                             wire, MTU 1500, offload none, 1 Gbit/s, 2 queues, 3 links, no coalescing  500ms + 2s + 200ms
bridge-colocated/st  bridge  colocated  1      builtin  TCP stream of 128 KiB, 4 streams, at 4 Gbit/s, IPv6          wire, MTU 1500, offload none, 1 Gbit/s, 2 queues, 3 links  500ms + 2s + 200ms

compared with the baseline:
  raw/st               / bridge-colocated/st  why
  bridge-colocated/st  / raw/st

published figures:
  raw/st  throughput_bps  1 Gbit/s  a table
`
	squeeze := func(s string) string {
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			lines[i] = strings.Join(strings.Fields(l), " ")
		}
		return strings.Join(lines, "\n")
	}
	got := Render(p)
	must.Equal(t, squeeze(want), squeeze(got))
	column := -1
	for _, line := range strings.Split(got, "\n")[3:7] {
		at := strings.Index(line, "two-nodes")
		if at < 0 {
			at = max(strings.Index(line, "PLACEMENT"), strings.Index(line, "colocated "))
		}
		if column >= 0 && at != column {
			t.Errorf("PLACEMENT stands at %d and at %d:\n%s", column, at, got)
		}
		column = at
	}
}

func TestPublishedFiguresAreConvertedToTheirMetricsUnit(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		want       float64
	}{
		{"7375.159 Mbit/s", "bit/s", 7375159000},
		{"9.18Gbit/s", "bit/s", 9.18e9},
		{"879.188 MiB/s", "bit/s", 7375163490.304},
		{"100 Mbps", "bit/s", 1e8},
		{"14.799 %", "%", 14.799},
		{"128 %", "cores", 1.28},
		{"1.28 cores", "cores", 1.28},
		{"11050 1/s", "1/s", 11050},
		{"11.05 k/s", "1/s", 11050},
		{"78 µs", "ns", 78000},
		{"78us", "ns", 78000},
		{"0.3 ms", "ns", 300000},
		{"0.1 %", "1", 0.001},
		{"3", "1", 3},
		{"42", "segments", 42},
		{"1460 B", "B", 1460},
	} {
		got, problem, _ := inUnit(c.text, c.unit)
		if problem != "" || got != c.want {
			t.Errorf("inUnit(%q, %q) = %v, %q; want %v", c.text, c.unit, got, problem, c.want)
		}
	}
	for text, says := range map[string]string{
		"7375.159":      "has no unit",
		"7375.159 MB/s": `"MB/s" is not a unit of this metric`,
		"7,375 Mbit/s":  `",375 Mbit/s" is not a unit`,
		"Mbit/s":        "does not start with a number",
		"-1 Mbit/s":     "does not start with a number",
		"1..2 Mbit/s":   "does not start with a number",
		".5 Mbit/s":     "does not start with a number",
		"5. Mbit/s":     "does not start with a number",
		"NaN":           "does not start with a number",
	} {
		_, problem, remedy := inUnit(text, "bit/s")
		if !strings.Contains(problem, says) || !strings.Contains(remedy, "7.5 Gbit/s") {
			t.Errorf("%q: %q, %q; want a problem that says %q", text, problem, remedy, says)
		}
	}
}
