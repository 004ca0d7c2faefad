package compare

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

const wholeFile = `# what must not get worse
gates:
  - metric: throughput_bps
    scenarios: ["bridge/*", raw]
    worse_by: 3%
  - metric: [latency_ns_p50, latency_ns_p99]
    worse_by: 0.5 %
    of: ratio
    on_doubt: fail
`

func TestGateFileIsReadWithItsDefaults(t *testing.T) {
	g := must.Get(ParseGates("gate.yaml", []byte(wholeFile)))(t)
	want := []Gate{
		{Metrics: []sample.Metric{sample.Throughput}, Scenarios: []suite.Pattern{{Text: "bridge/*", Line: 4, Column: 17}, {Text: "raw", Line: 4, Column: 29}}, WorseBy: 0.03, Of: suite.OfValue, OnDoubt: suite.UnjudgedOnDoubt, Line: 3},
		{Metrics: []sample.Metric{sample.LatencyP50, sample.LatencyP99}, WorseBy: 0.005, Of: suite.OfRatio, OnDoubt: suite.FailOnDoubt, Line: 6},
	}
	must.Equal(t, want, g.List, cmpopts.EquateApprox(1e-12, 0))
	must.Equal(t, "throughput_bps worse by 3 % in bridge/*, raw", g.List[0].Title())
}

func TestGateFileErrorsNamePlaceAndRemedy(t *testing.T) {
	gate := func(lines string) string { return "gates:\n  - metric: throughput_bps\n    worse_by: 3%\n" + lines }
	for name, c := range map[string]struct {
		text         string
		line, column int
		says         []string
	}{
		"unknown metric":        {"gates:\n  - metric: throughput_bsp\n    worse_by: 3%\n", 2, 13, []string{`no metric "throughput_bsp"`, `did you mean "throughput_bps"?`}},
		"no direction":          {"gates:\n  - metric: window_s\n    worse_by: 3%\n", 2, 13, []string{"has no better direction"}},
		"metric twice":          {"gates:\n  - metric: [drops, drops]\n    worse_by: 3%\n", 2, 21, []string{"twice"}},
		"unknown key":           {gate("    worse: 3%\n"), 4, 5, []string{`unknown key "worse"`, `did you mean "worse_by"?`}},
		"key of no likeness":    {gate("    tolerance: 3%\n"), 4, 5, []string{`unknown key "tolerance"`, "known here: metric, scenarios"}},
		"near key":              {gate("    on_dout: fail\n"), 4, 5, []string{`did you mean "on_doubt"?`}},
		"unknown key above":     {"gate: []\n", 1, 1, []string{`unknown key "gate"`, `did you mean "gates"?`}},
		"key twice":             {gate("    worse_by: 4%\n"), 4, 5, []string{"set twice, first in line 3"}},
		"no threshold":          {"gates:\n  - metric: drops\n", 2, 5, []string{"lacks worse_by"}},
		"no metric":             {"gates:\n  - worse_by: 3%\n", 2, 5, []string{"lacks metric"}},
		"no percentage":         {"gates:\n  - metric: drops\n    worse_by: 0.03\n", 3, 19, []string{`"0.03": has no percent sign`, `"3%"`}},
		"negative":              {"gates:\n  - metric: drops\n    worse_by: -3%\n", 3, 15, []string{"is negative"}},
		"not a number":          {"gates:\n  - metric: drops\n    worse_by: NaN%\n", 3, 15, []string{"does not start with a number"}},
		"more than all":         {"gates:\n  - metric: throughput_bps\n    worse_by: 100%\n", 2, 5, []string{"cannot get worse by 100 %"}},
		"wrong of":              {gate("    of: ration\n"), 4, 9, []string{`did you mean "ratio"?`}},
		"wrong doubt":           {gate("    on_doubt: maybe\n"), 4, 15, []string{"allowed: unjudged, pass, fail"}},
		"pattern of no meaning": {gate("    scenarios: ['[a']\n"), 4, 17, []string{`"[a" cannot be read`}},
		"alias for a pattern":   {gate("    scenarios: [*/stream]\n"), 4, 17, []string{"quotes"}},
		"no list":               {"gates: 3\n", 1, 8, []string{"gates has no entry"}},
		"empty list":            {"gates: []\n", 1, 8, []string{"gates has no entry"}},
		"no value":              {"gates:\n", 1, 8, []string{"gates has no entry"}},
		"no mapping":            {"gates:\n  - 5\n", 2, 5, []string{"instead of a gate"}},
		"empty scenarios":       {gate("    scenarios: []\n"), 4, 16, []string{"the list has 0 entries"}},
		"empty":                 {"", 0, 0, []string{"the file is empty"}},
		"comments only":         {"# nothing\n", 0, 0, []string{"the file is empty"}},
		"two documents":         {gate("---\ngates: []\n"), 4, 1, []string{"second document"}},
		"broken":                {"gates: [\n", 1, 8, []string{"cannot be read"}},
		"binary":                {"gates\x00", 1, 6, []string{"control character"}},
		"huge":                  {strings.Repeat("#", MaxGateBytes+1), 0, 0, []string{"65537 bytes"}},
		"deep":                  {"gates: " + strings.Repeat("[", 50), 1, 16, []string{"nested"}},
	} {
		g, err := ParseGates("gate.yaml", []byte(c.text))
		var es suite.Errors
		if g != nil || !errors.As(err, &es) || len(es) == 0 {
			t.Errorf("%s: %v, error %v", name, g, err)
			continue
		}
		if es[0].Line != c.line || es[0].Column != c.column {
			t.Errorf("%s: at %d:%d, want %d:%d: %v", name, es[0].Line, es[0].Column, c.line, c.column, err)
		}
		for _, says := range c.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %q lacks %q", name, err, says)
			}
		}
	}
}

func TestAllMistakesOfAGateFileAreReportedTogether(t *testing.T) {
	_, err := ParseGates("gate.yaml", []byte("gates:\n  - metric: nosuch\n    worse_by: 3\n    off: 1\n"))
	var es suite.Errors
	if !errors.As(err, &es) || len(es) != 4 { // the key "off" is read as "of", and its value is wrong, too
		t.Fatalf("%v", err)
	}
	for i, line := range []int{2, 3, 4, 4} {
		if es[i].Line != line {
			t.Errorf("error %d stands at line %d, want %d", i, es[i].Line, line)
		}
	}
}

func TestGatePatternThatNamesNothingIsAnErrorWithItsPlace(t *testing.T) {
	g, err := ParseGates("gate.yaml", []byte(wholeFile))
	must.Succeed(t, err)
	must.Succeed(t, g.file.Bind([]string{"bridge/stream", "raw/stream"}))
	err = g.file.Bind([]string{"brigde/stream", "raw/stream"})
	must.Fail(t, err, "gate.yaml:4:17", "scenarios: brigde, brigde/stream, raw, raw/stream")
}

// FuzzParseGates asserts, for any text: no panic, and either complete errors
// or gates of which each can fail.
func FuzzParseGates(f *testing.F) {
	for _, text := range []string{wholeFile, "", "gates:", "gates: [{metric: drops, worse_by: 0%}]", "gates: [&a *a]", "? a\n: b", "a: |\n  x\n", "gates:\n\t- x", "- - -", "{a: b}: c", "gates:\n- metric: [drops, errors]\n  worse_by: 1e9%"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := ParseGates("fuzz.yaml", data)
		if err != nil {
			var es suite.Errors
			if !errors.As(err, &es) || len(es) == 0 || len(es) > 21 {
				t.Fatalf("error is a %T: %v", err, err)
			}
			for _, e := range es {
				if e.File != "fuzz.yaml" || e.Problem == "" || e.Error() == "" {
					t.Fatalf("incomplete error %#v", e)
				}
			}
			return
		}
		for _, gate := range g.List {
			if len(gate.Metrics) == 0 || gate.WorseBy < 0 || gate.WorseBy > 10 || gate.Line < 1 || gate.Title() == "" {
				t.Fatalf("gate %+v", gate)
			}
			if gate.Of != suite.OfValue && gate.Of != suite.OfRatio || !slices.Contains([]suite.OnDoubt{suite.UnjudgedOnDoubt, suite.PassOnDoubt, suite.FailOnDoubt}, gate.OnDoubt) {
				t.Fatalf("gate %+v", gate)
			}
		}
		_ = g.file.Bind([]string{"a/b"})
	})
}
