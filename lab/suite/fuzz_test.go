package suite

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
)

// FuzzParseAndExpand asserts, for any text: no panic, an error that is a
// complete Errors, or a plan whose parts fit together.
func FuzzParseAndExpand(f *testing.F) {
	files, err := filepath.Glob("../../suites/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no suites to start from: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must.Succeed(f, err)
		f.Add(data)
	}
	for _, text := range []string{
		"", small, with("titel: x"), with("published: [{scenario: raw/rr, metric: throughput_bps, value: 1 GB/s, source: x}]"),
		with("fabrics: {a: {kind: veth, links: 2}, b: {rate: 1GB/s}}\nnodes: 1"),
		with("precision: 2%\nmax_trials: 9\nmax_time: 5m\nladders: [{steps: [raw, bridge], names: [a, b]}]"),
		with("hypotheses: [{claim: c, baseline: raw, subjects: [bridge], ratio: 2 +- 10%}, {claim: d, baseline: raw/rr, subject: bridge/rr, ratio: '>= 0.9', metric: latency_ns_p50}, {claim: e, subject: raw, metric: sender_cpu_cores, value: 1 ± 0.5 cores}, {claim: f, baseline: raw/rr, subject: bridge/rr, metric: sender_cpu_cores, difference: <= -5 %}, {claim: g, subject: raw/rr, metric: receiver_cpu_cores, over: sender_cpu_cores, ratio: 3 ± 1}]"),
		with("tables: {t: {title: x, source: y, corner: z}}\npublished: [{table: t, row: a, column: b, scenario: raw/stream, metric: throughput_bps, value: 9.11 MB/sec}, {table: t, row: a, column: c, scenario: raw/stream, baseline: bridge/stream, metric: throughput_bps, value: '-27%'}, {table: t, row: b, column: b, value: 5, note: n}]\nshort: {trials: 2, timing: {duration: 1s}, scenarios: 'r*', tool: x}"),
		with("hypotheses: [{claim: c, baseline: raw, subject: bridge, ratio: 1 ± 200 %}]\nladders: [{steps: [raw]}]\nmax_time: 1s\nprecision: 90 %"),
		swap("- system", "- id: '{system}/{x'\n    system"), "a: |\n  b\n? c\n", "[[[[", "- - -", "a: &b [*b]", "\xff", "--- !!x\n...\n---\n", "{a: b}: c", "\"\\x\": 1", "a:\n\t- b",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz.yaml", data)
		if err != nil {
			checkErrors(t, err)
			return
		}
		for _, opts := range []ExpandOptions{{}, {Short: true}, {Tool: "x", Duration: time.Second, Trials: 3}, {Precision: 0.01}, {Vocabulary: Vocabulary{Systems: []string{"bridge"}}}} {
			p, err := s.Expand(opts)
			if opts.Short && !s.spec.short.Set {
				if err == nil || !strings.Contains(err.Error(), "no short form") {
					t.Fatalf("a short form that there is not: %v", err)
				}
				continue
			}
			if err != nil && (opts.Trials > 0 || opts.Precision > 0) && strings.Contains(err.Error(), "is below the minimum of") {
				continue // an option that contradicts the file
			}
			if err != nil {
				checkErrors(t, err)
				continue
			}
			checkPlan(t, p)
		}
	})
}

func checkErrors(t *testing.T, err error) {
	t.Helper()
	var es Errors
	if !errors.As(err, &es) || len(es) == 0 || len(es) > mostErrors+1 {
		t.Fatalf("error is a %T with %d entries", err, len(es))
	}
	for _, e := range es {
		if e.File != "fuzz.yaml" || e.Problem == "" || e.Line < 0 || e.Column < 0 || e.Error() == "" {
			t.Fatalf("incomplete error %#v", e)
		}
	}
}

func checkPlan(t *testing.T, p *Plan) {
	t.Helper()
	if p.Trials < 1 || p.Nodes < 1 || len(p.Scenarios) == 0 || Render(p) == "" || p.Estimate() <= 0 || p.WorstCase() < p.Estimate() {
		t.Fatalf("plan %+v", p)
	}
	known := map[string]bool{}
	for _, s := range p.Scenarios {
		if known[s.ID] || s.ID == "" || s.Title == "" || s.System == "" || s.Tool == "" || s.Pairs < 1 || s.Timing.Duration <= 0 {
			t.Fatalf("scenario %+v", s)
		}
		if s.Workload.Kind == "" || s.Workload.Streams < 1 || s.Fabric.MTU < LeastMTU || s.Fabric.Links < 1 {
			t.Fatalf("scenario %+v", s)
		}
		known[s.ID] = true
	}
	if s := p.Stop; s != (Stop{}) && (s.Precision < leastPrecision || s.Precision > mostPrecision || s.MaxTrials < p.Trials || s.MaxTime < leastTime) {
		t.Fatalf("stop %+v after %d trials", s, p.Trials)
	}
	for _, l := range p.Ladders {
		if len(l.Steps) < leastSteps || len(l.Steps) > mostSteps || len(l.Names) != len(l.Steps) {
			t.Fatalf("ladder %+v", l)
		}
		for i, id := range l.Steps {
			if !known[id] || l.Names[i] == "" || slices.Contains(l.Steps[:i], id) {
				t.Fatalf("ladder %+v", l)
			}
		}
	}
	for _, h := range p.Hypotheses {
		if _, real := sample.Describe(sample.Metric(h.Metric)); !real || h.Claim == "" || h.Printed == "" || !(h.Low < h.High) || h.Low < 0 && !h.Difference || len(h.Subjects) == 0 || h.Baseline != "" && !known[h.Baseline] {
			t.Fatalf("hypothesis %+v", h)
		}
		for _, id := range h.Subjects {
			if !known[id] || id == h.Baseline {
				t.Fatalf("hypothesis %+v", h)
			}
		}
	}
	if _, err := json.Marshal(p); err != nil {
		t.Fatalf("the plan is no JSON: %v", err)
	}
	for _, c := range p.Comparisons {
		if !known[c.Baseline] || !known[c.Subject] || c.Baseline == c.Subject {
			t.Fatalf("comparison %+v", c)
		}
	}
}
