package suite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
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
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{
		"", small, with("titel: x"), with("published: [{scenario: raw/rr, metric: throughput_bps, value: 1 GB/s, source: x}]"),
		with("fabrics: {a: {kind: veth, links: 2}, b: {rate: 1GB/s}}\nnodes: 1"),
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
		for _, opts := range []ExpandOptions{{}, {Tool: "x", Duration: time.Second, Trials: 3}, {Vocabulary: Vocabulary{Systems: []string{"bridge"}}}} {
			p, err := s.Expand(opts)
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
		if s.Workload.Kind == "" || s.Workload.Streams < 1 || s.Fabric.MTU < leastMTU || s.Fabric.Links < 1 {
			t.Fatalf("scenario %+v", s)
		}
		known[s.ID] = true
	}
	for _, c := range p.Comparisons {
		if !known[c.Baseline] || !known[c.Subject] || c.Baseline == c.Subject {
			t.Fatalf("comparison %+v", c)
		}
	}
}
