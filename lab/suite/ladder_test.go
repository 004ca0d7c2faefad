package suite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
)

// tall is a suite of three groups, for ladders and hypotheses.
const tall = `suite: tall
workloads:
  stream: {kind: tcp_stream}
  rr: {kind: tcp_rr}
scenarios:
  - system: [raw, bridge, vxlan]
    workload: [stream, rr]
  - {id: alone, system: bridge, workload: stream}
`

func TestALadderOfGroupsIsOneForEveryPart(t *testing.T) {
	for lines, want := range map[string][]Ladder{
		"ladders: [{title: up, steps: [raw, bridge, vxlan]}]": {
			{"up (stream)", []string{"raw/stream", "bridge/stream", "vxlan/stream"}, []string{"raw", "bridge", "vxlan"}},
			{"up (rr)", []string{"raw/rr", "bridge/rr", "vxlan/rr"}, []string{"raw", "bridge", "vxlan"}},
		},
		"ladders: [{steps: [vxlan, raw], names: [the tunnel, none]}]": {
			{"(stream)", []string{"vxlan/stream", "raw/stream"}, []string{"the tunnel", "none"}},
			{"(rr)", []string{"vxlan/rr", "raw/rr"}, []string{"the tunnel", "none"}},
		},
		"ladders: [{title: up, steps: [raw/rr, bridge/rr]}]": {
			{"up", []string{"raw/rr", "bridge/rr"}, []string{"raw/rr", "bridge/rr"}},
		},
		"ladders: [{steps: [raw/stream, alone], names: [a, b]}]": {
			{"", []string{"raw/stream", "alone"}, []string{"a", "b"}},
		},
		"  - {id: x/one, system: raw, workload: rr}\n  - {id: y/one, system: bridge, workload: rr}\nladders: [{title: t, steps: [x, y]}, {steps: [raw/rr, vxlan/rr]}]": {
			{"t", []string{"x/one", "y/one"}, []string{"x", "y"}},
			{"", []string{"raw/rr", "vxlan/rr"}, []string{"raw/rr", "vxlan/rr"}},
		},
	} {
		got := mustExpand(t, tall+lines+"\n", ExpandOptions{}).Ladders
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", lines, diff)
		}
	}
}

func TestStepsOfOneTrafficUnderTwoNamesMakeALadder(t *testing.T) {
	p := mustExpand(t, `suite: s
workloads: {a: {kind: tcp_rr}, b: {kind: tcp_rr, request: 1}}
scenarios: [{system: raw, workload: a}, {system: bridge, workload: b}]
ladders: [{steps: [raw/a, bridge/b]}]
`, ExpandOptions{})
	if len(p.Ladders) != 1 {
		t.Errorf("the ladders are %+v, want one", p.Ladders)
	}
}

func TestAFilteredLadderKeepsTwoStepsOrMoreAndNamesTheOmittedSteps(t *testing.T) {
	text := tall + "ladders: [{steps: [raw/rr, bridge/rr, vxlan/rr], names: [host, bridge, tunnel]}]\n"
	for filter, want := range map[string][]Ladder{
		"":                {{"", []string{"raw/rr", "bridge/rr", "vxlan/rr"}, []string{"host", "bridge", "tunnel"}}},
		"raw vxlan":       {{"", []string{"raw/rr", "vxlan/rr"}, []string{"host", "bridge + tunnel"}}},
		"bridge vxlan/rr": {{"", []string{"bridge/rr", "vxlan/rr"}, []string{"bridge", "tunnel"}}},
		"raw bridge":      {{"", []string{"raw/rr", "bridge/rr"}, []string{"host", "bridge"}}},
		"vxlan":           nil,
		"*/stream":        nil,
	} {
		got := mustExpand(t, text, ExpandOptions{Scenarios: strings.Fields(filter)}).Ladders
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", filter, diff)
		}
	}
}

func TestAReplacedToolRemovesItsStepsAndHypotheses(t *testing.T) {
	s := mustParse(t, `suite: s
workloads: {st: {kind: tcp_stream}}
scenarios:
  - {id: "{tool}/st", system: bridge, tool: builtin}
  - {system: [raw, bridge], workload: st}
ladders: [{steps: [builtin, bridge]}, {steps: [raw, bridge, builtin], names: [r, b, t]}]
hypotheses:
  - {claim: c, baseline: builtin, subject: bridge, ratio: 1 ± 2 %}
  - {claim: d, baseline: raw, subjects: [bridge, builtin], ratio: 1 ± 2 %}
`)
	p, err := s.Expand(ExpandOptions{Tool: "iperf3"})
	must.Succeed(t, err)
	must.Equal(t, []Ladder{{"", []string{"raw/st", "bridge/st"}, []string{"r", "b"}}}, p.Ladders)
	if len(p.Hypotheses) != 1 || p.Hypotheses[0].Claim != "d" || strings.Join(p.Hypotheses[0].Subjects, " ") != "bridge/st" {
		t.Errorf("hypotheses %+v", p.Hypotheses)
	}
}

func TestRenderPrintsLaddersAndHypotheses(t *testing.T) {
	got := Render(mustExpand(t, tall+`ladders: [{title: up, steps: [raw/rr, bridge/rr, vxlan/rr], names: [host, bridge, the tunnel]}]
hypotheses: [{claim: it is cheap, baseline: raw/rr, subjects: [bridge/rr, vxlan/rr], ratio: ">= 0.9"}, {claim: it is fast, subject: raw/stream, value: ">= 9 Gbps"}]
`, ExpandOptions{}))
	for _, want := range []string{
		"\nladders, each step's cost over the one before it:\n  raw/rr (host) → bridge/rr → vxlan/rr (the tunnel)  up\n",
		"\nhypotheses:\n  it is cheap  transactions_per_s of bridge/rr, vxlan/rr / raw/rr  is >= 0.9\n  it is fast   throughput_bps of raw/stream                        is >= 9 Gbps\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("rendered\n%s\nwithout\n%s", got, want)
		}
	}
}
