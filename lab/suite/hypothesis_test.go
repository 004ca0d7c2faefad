package suite

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
)

func TestAHypothesisOfGroupsIsOneForEveryPart(t *testing.T) {
	const most = math.MaxFloat64
	for lines, want := range map[string][]Hypothesis{
		"{claim: c, baseline: raw, subjects: [bridge, vxlan], ratio: 2 ± 10 %}": {
			{Claim: "c (stream)", Metric: "throughput_bps", Baseline: "raw/stream", Subjects: []string{"bridge/stream", "vxlan/stream"}, Low: 1.8, High: 2.2, Printed: "2 ± 10 %"},
			{Claim: "c (rr)", Metric: "transactions_per_s", Baseline: "raw/rr", Subjects: []string{"bridge/rr", "vxlan/rr"}, Low: 1.8, High: 2.2, Printed: "2 ± 10 %"},
		},
		"{claim: c, baseline: raw/rr, subject: bridge/rr, ratio: '>= 0.95'}": {
			{Claim: "c", Metric: "transactions_per_s", Baseline: "raw/rr", Subjects: []string{"bridge/rr"}, Low: 0.95, High: most, Printed: ">= 0.95"},
		},
		"{claim: c, baseline: raw/stream, subjects: [alone, bridge/stream], ratio: <= 1.1}": {
			{Claim: "c", Metric: "throughput_bps", Baseline: "raw/stream", Subjects: []string{"alone", "bridge/stream"}, Low: 0, High: 1.1, Printed: "<= 1.1"},
		},
		"{claim: c, baseline: raw, subject: bridge, metric: sender_cpu_ns_per_packet, ratio: 1 ± 0.05}": {
			{Claim: "c (stream)", Metric: "sender_cpu_ns_per_packet", Baseline: "raw/stream", Subjects: []string{"bridge/stream"}, Low: 0.95, High: 1.05, Printed: "1 ± 0.05"},
			{Claim: "c (rr)", Metric: "sender_cpu_ns_per_packet", Baseline: "raw/rr", Subjects: []string{"bridge/rr"}, Low: 0.95, High: 1.05, Printed: "1 ± 0.05"},
		},
		"{claim: c, subjects: [raw/stream, alone], value: '>= 9 Gbps'}": {
			{Claim: "c", Metric: "throughput_bps", Subjects: []string{"raw/stream", "alone"}, Low: 9e9, High: most, Printed: ">= 9 Gbps"},
		},
		"{claim: c, subjects: raw, metric: sender_cpu_percent, value: <= 95 %}": {
			{Claim: "c", Metric: "sender_cpu_percent", Subjects: []string{"raw/stream", "raw/rr"}, Low: 0, High: 95, Printed: "<= 95 %"},
		},
		"{claim: c, subjects: raw/rr, value: 1600 ± 160 k/s}": {
			{Claim: "c", Metric: "transactions_per_s", Subjects: []string{"raw/rr"}, Low: 1.44e6, High: 1.76e6, Printed: "1600 ± 160 k/s"},
		},
		"{claim: c, baseline: raw/rr, subject: bridge/rr, metric: receiver_cpu_cores, difference: -15 ± 5 %}": {
			{Claim: "c", Metric: "receiver_cpu_cores", Baseline: "raw/rr", Difference: true, Subjects: []string{"bridge/rr"}, Low: -0.2, High: -0.1, Printed: "-15 ± 5 %"},
		},
		"{claim: c, baseline: raw, subject: bridge, metric: receiver_cpu_cores, difference: '<= 0.1 cores'}": {
			{Claim: "c (stream)", Metric: "receiver_cpu_cores", Baseline: "raw/stream", Difference: true, Subjects: []string{"bridge/stream"}, Low: -most, High: 0.1, Printed: "<= 0.1 cores"},
			{Claim: "c (rr)", Metric: "receiver_cpu_cores", Baseline: "raw/rr", Difference: true, Subjects: []string{"bridge/rr"}, Low: -most, High: 0.1, Printed: "<= 0.1 cores"},
		},
		"{claim: c, subject: bridge/stream, metric: receiver_cpu_percent, over: sender_cpu_percent, ratio: 3 ± 1}": {
			{Claim: "c", Metric: "receiver_cpu_percent", Over: "sender_cpu_percent", Subjects: []string{"bridge/stream"}, Low: 2, High: 4, Printed: "3 ± 1"},
		},
		"{claim: c, baseline: raw/rr, subject: bridge/rr, statistic: spread, ratio: <= 1}": {
			{Claim: "c", Metric: "transactions_per_s", Baseline: "raw/rr", Spread: true, Subjects: []string{"bridge/rr"}, Low: 0, High: 1, Printed: "<= 1"},
		},
		"{claim: c, baseline: raw/rr, subject: bridge/rr, statistic: median, ratio: <= 1}": {
			{Claim: "c", Metric: "transactions_per_s", Baseline: "raw/rr", Subjects: []string{"bridge/rr"}, Low: 0, High: 1, Printed: "<= 1"},
		},
		"{claim: c, baseline: raw, subject: bridge, metric: latency_ns_p99, ratio: 1 ± 0.05}": {
			{Claim: "c", Metric: "latency_ns_p99", Baseline: "raw/rr", Subjects: []string{"bridge/rr"}, Low: 0.95, High: 1.05, Printed: "1 ± 0.05"},
		},
	} {
		got := mustExpand(t, tall+"hypotheses: ["+lines+"]\n", ExpandOptions{}).Hypotheses
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", lines, diff)
		}
	}
}

func TestTheErrorOfAContradictoryHypothesisHasTheReason(t *testing.T) {
	for keys, says := range map[string]string{
		"baseline: raw/rr, subject: bridge/rr":                                                       "a hypothesis lacks ratio or difference or value",
		"baseline: raw/rr, subject: bridge/rr, ratio: 1 ± 0.1, value: '>= 1 1/s'":                    "a hypothesis has ratio and value, and may have only one of them",
		"subject: bridge/rr, ratio: 1 ± 0.1":                                                         "lacks baseline",
		"subject: bridge/rr, metric: sender_cpu_cores, difference: '>= 1 cores'":                     "lacks baseline",
		"baseline: raw/rr, subject: bridge/rr, value: '>= 1 1/s'":                                    "a value has no baseline",
		"subject: bridge/rr, over: sender_cpu_cores, value: '>= 1 1/s'":                              "over has no meaning here",
		"baseline: raw/rr, subject: bridge/rr, over: sender_cpu_cores, ratio: 1 ± 0.1":               "over has no meaning here",
		"subject: bridge/rr, statistic: spread, value: '>= 1 1/s'":                                   "a claim about spreads lacks ratio or baseline",
		"baseline: raw/rr, subject: bridge/rr, statistic: spread, difference: '>= 1 1/s'":            "a claim about spreads lacks ratio or baseline",
		"subject: bridge/rr, over: loss_ratio, ratio: 1 ± 0.1":                                       "does not have transactions_per_s and loss_ratio",
		"subject: bridge/rr, metric: throughput_bps, value: '>= 1 Gbps'":                             "does not have throughput_bps",
		"subject: bridge/rr, value: '>= 1 Gbps'":                                                     `"Gbps" is not a unit of this metric`,
		"subject: bridge/stream, value: '>= 9'":                                                      "has no unit",
		"subject: bridge/stream, value: 9 Gbps":                                                      "is not a range",
		"subject: bridge/stream, value: '>= -9 Gbps'":                                                "is negative",
		"subject: bridge/stream, value: 9 ± 10 Gbps":                                                 "reaches below 0",
		"subject: bridge/stream, value: <= 0 Gbps":                                                   "leaves no range",
		"baseline: raw/rr, subject: bridge/rr, metric: sender_cpu_cores, difference: 1 ± 0 cores":    "leaves no range",
		"subject: gone, value: '>= 9 Gbps'":                                                          `no scenario or group "gone"`,
		"subject: bridge/stream, metric: nothing, value: '>= 9 Gbps'":                                `"nothing" is not a metric`,
		"subject: bridge/stream, value: '>= " + strings.Repeat("9", 16) + " Gbps'":                   "is not a range",
		"baseline: raw/rr, subject: bridge/rr, metric: sender_cpu_cores, difference: '>= 1 cores/s'": `"cores/s" is not a unit`,
	} {
		_, err := Parse("x.yaml", []byte(tall+"hypotheses: [{claim: c, "+keys+"}]\n"))
		must.Fail(t, err, says)
	}
}

func TestAHypothesisWithoutBaselineIsKeptWithItsScenario(t *testing.T) {
	text := tall + "hypotheses: [{claim: c, subjects: [raw/stream, bridge/stream], value: '>= 9 Gbps'}]\n"
	for filter, want := range map[string]string{"bridge": "bridge/stream", "raw bridge": "raw/stream bridge/stream", "vxlan": ""} {
		var got string
		for _, h := range mustExpand(t, text, ExpandOptions{Scenarios: strings.Fields(filter)}).Hypotheses {
			got += strings.Join(h.Subjects, " ")
		}
		if got != want {
			t.Errorf("%q keeps %q, want %q", filter, got, want)
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

func TestAHypothesisWithoutUpperBoundIsUnchangedInJSON(t *testing.T) {
	p := mustExpand(t, tall+"hypotheses: [{claim: c, baseline: raw/rr, subject: bridge/rr, ratio: '>= 0.95'}]\n", ExpandOptions{})
	data, err := json.Marshal(p)
	must.Succeed(t, err)
	var back Plan
	must.Succeed(t, json.Unmarshal(data, &back))
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
