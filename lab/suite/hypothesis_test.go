package suite

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAHypothesisOfGroupsIsOneForEveryPart(t *testing.T) {
	const most = math.MaxFloat64
	for lines, want := range map[string][]Hypothesis{
		"{claim: c, baseline: raw, subjects: [bridge, vxlan], ratio: 2 ± 10 %}": {
			{"c (stream)", "throughput_bps", "raw/stream", []string{"bridge/stream", "vxlan/stream"}, 1.8, 2.2, "2 ± 10 %"},
			{"c (rr)", "transactions_per_s", "raw/rr", []string{"bridge/rr", "vxlan/rr"}, 1.8, 2.2, "2 ± 10 %"},
		},
		"{claim: c, baseline: raw/rr, subject: bridge/rr, ratio: '>= 0.95'}": {
			{"c", "transactions_per_s", "raw/rr", []string{"bridge/rr"}, 0.95, most, ">= 0.95"},
		},
		"{claim: c, baseline: raw/stream, subjects: [alone, bridge/stream], ratio: <= 1.1}": {
			{"c", "throughput_bps", "raw/stream", []string{"alone", "bridge/stream"}, 0, 1.1, "<= 1.1"},
		},
		"{claim: c, baseline: raw, subject: bridge, metric: sender_cpu_ns_per_packet, ratio: 1 ± 0.05}": {
			{"c (stream)", "sender_cpu_ns_per_packet", "raw/stream", []string{"bridge/stream"}, 0.95, 1.05, "1 ± 0.05"},
			{"c (rr)", "sender_cpu_ns_per_packet", "raw/rr", []string{"bridge/rr"}, 0.95, 1.05, "1 ± 0.05"},
		},
		"{claim: c, baseline: raw, subject: bridge, metric: latency_ns_p99, ratio: 1 ± 0.05}": {
			{"c", "latency_ns_p99", "raw/rr", []string{"bridge/rr"}, 0.95, 1.05, "1 ± 0.05"},
		},
	} {
		got := mustExpand(t, tall+"hypotheses: ["+lines+"]\n", ExpandOptions{}).Hypotheses
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", lines, diff)
		}
	}
}

func TestAFilteredHypothesisKeepsTheSubjectsThatRemain(t *testing.T) {
	text := tall + "hypotheses: [{claim: c, baseline: raw, subjects: [bridge, vxlan], ratio: 1 ± 3 %}]\n"
	for filter, want := range map[string]string{
		"":                      "raw/stream: bridge/stream vxlan/stream; raw/rr: bridge/rr vxlan/rr",
		"raw vxlan":             "raw/stream: vxlan/stream; raw/rr: vxlan/rr",
		"raw/rr bridge":         "raw/rr: bridge/rr",
		"bridge vxlan":          "",
		"raw":                   "",
		"raw/rr bridge/stream":  "",
		"raw/stream */stream":   "raw/stream: bridge/stream vxlan/stream",
		"raw/* bridge/rr vx*/*": "raw/stream: vxlan/stream; raw/rr: bridge/rr vxlan/rr",
	} {
		var got []string
		for _, h := range mustExpand(t, text, ExpandOptions{Scenarios: strings.Fields(filter)}).Hypotheses {
			got = append(got, h.Baseline+": "+strings.Join(h.Subjects, " "))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%q keeps %q, want %q", filter, got, want)
		}
	}
}

func TestABandIsReadExactly(t *testing.T) {
	const most = math.MaxFloat64
	for text, want := range map[string]band{
		"2 ± 10 %":    {1.8, 2.2, "2 ± 10 %"},
		"2±10%":       {1.8, 2.2, "2±10%"},
		"2 +- 10%":    {1.8, 2.2, "2 +- 10%"},
		"2 +/- 10 %":  {1.8, 2.2, "2 +/- 10 %"},
		"1 ± 3 %":     {0.97, 1.03, "1 ± 3 %"},
		"1 ± 0.05":    {0.95, 1.05, "1 ± 0.05"},
		"0.5 ± 0.1 %": {0.4995, 0.5005, "0.5 ± 0.1 %"},
		"1 ± 99.9 %":  {0.001, 1.999, "1 ± 99.9 %"},
		">= 0.95":     {0.95, most, ">= 0.95"},
		"≥0.95":       {0.95, most, "≥0.95"},
		"<= 1.1":      {0, 1.1, "<= 1.1"},
		" ≤ 1000000 ": {0, 1e6, "≤ 1000000"},
	} {
		got, problem := parseBand(text)
		if problem != "" || got != want {
			t.Errorf("%q is %+v, %q; want %+v", text, got, problem, want)
		}
	}
	for text, says := range map[string]string{
		"":                                   "does not say where a ratio lies",
		"2":                                  "does not say where",
		"± 10 %":                             "does not say where",
		"2 ±":                                "does not say where",
		"2 ± x":                              "does not say where",
		"2 ± 10 %%":                          "does not say where",
		"-2 ± 10 %":                          "does not say where",
		"2 - 10 %":                           "does not say where",
		"> 2":                                "does not say where",
		">= 2 ± 1":                           "does not say where",
		"NaN ± 1":                            "does not say where",
		"1e3 ± 1":                            "does not say where",
		"1. ± 1":                             "does not say where",
		">= 1000001":                         "a ratio of 1000001 is out of bounds",
		"0 ± 0.1":                            "a ratio of 0 is out of bounds",
		"1 ± 0 %":                            "the margin is 0",
		"1 ± 0.000":                          "the margin is 0",
		"1 ± 0.000000000000001 %":            "too small to be told from 0",
		"1 ± 1":                              "reaches down to a ratio of 0",
		"2 ± 100 %":                          "reaches down to a ratio of 0",
		"0.5 ± 7":                            "reaches down to a ratio of 0",
		"2 ± " + strings.Repeat("9", 10_000): "does not say where",
	} {
		if got, problem := parseBand(text); !strings.Contains(problem, says) {
			t.Errorf("%q is %+v, %q; want a problem that says %q", clip(text), got, clip(problem), says)
		}
	}
}

func TestAHypothesisWithoutUpperBoundSurvivesJSON(t *testing.T) {
	p := mustExpand(t, tall+"hypotheses: [{claim: c, baseline: raw/rr, subject: bridge/rr, ratio: '>= 0.95'}]\n", ExpandOptions{})
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Plan
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, &back); diff != "" || back.Hypotheses[0].High != math.MaxFloat64 {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// FuzzBand asserts, for any text: a problem in words, or bounds in order above 0.
func FuzzBand(f *testing.F) {
	for _, s := range []string{"", "2 ± 10 %", "2 +- 10%", "1 ± 0.05", ">= 0.95", "≤ 1.1", "1 ± 100 %", "0.000000000000001 ± 0.000000000000001 %", "999999999999999 ± 1", "± ", "\xff", "1 ± 1\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, problem := parseBand(text)
		if problem != "" {
			if len(problem) > 1000 || b != (band{}) {
				t.Fatalf("%q: %+v with the problem %q", text, b, problem)
			}
			return
		}
		if !(0 <= b.low && b.low < b.high) || b.printed == "" {
			t.Fatalf("%q is %+v", text, b)
		}
		if again, problem := parseBand(b.printed); problem != "" || again != b {
			t.Fatalf("%q is %+v, and as printed %+v, %q", text, b, again, problem)
		}
	})
}
