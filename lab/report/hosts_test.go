package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// hostRun returns a run between hosts. rate returns the throughput of a pair, bit/s; 0 for a
// trial that fails. Every trial has noise of 2 %, and every block a drift.
func hostRun(t testing.TB, hosts, blocks int, pairs string, rate func(suite.HostPair) float64) (sample.Run, suite.Plan, []sample.Sample) {
	t.Helper()
	var names []string
	for i := range hosts {
		names = append(names, fmt.Sprintf("h%d", i))
	}
	m := must.Get(suite.NewMatrix(names, pairs, 1))(t)
	plan := suite.Plan{Suite: "test", Title: "Hosts", Nodes: 2, Trials: blocks, Matrix: m, Scenarios: []suite.Scenario{{
		ID: "raw/one", Title: "raw", System: "raw", Placement: suite.TwoNodes, Pairs: 1, Tool: "builtin",
		Workload: suite.Workload{Name: "one", Kind: suite.TCPStream, Streams: 1, IPVersion: 4},
	}}}
	var samples []sample.Sample
	rng := rand.New(rand.NewPCG(uint64(hosts), uint64(blocks)))
	for block := range blocks {
		drift := 1 + 0.05*rng.NormFloat64()
		for i := range m.Len() {
			s := sample.Sample{Scenario: suite.PairID("raw/one", m.Pair(i)), Block: block}
			if bits := rate(m.Pair(i)); bits > 0 {
				s.Metrics = sample.Metrics{sample.Throughput: bits * drift * (1 + 0.02*rng.NormFloat64())}
			} else {
				s.Failure = &sample.Failure{Kind: sample.AgentLost, Message: "node h9's agent has ended"}
			}
			samples = append(samples, s)
		}
	}
	return sample.Run{ID: "r", Suite: "test", Title: "Hosts", Status: sample.Complete}, plan, samples
}

// marked lists the slow and the asymmetric pairs of a report's only matrix.
func marked(r *model.Report) (slow, asymmetric []string) {
	for _, f := range r.HostMatrices[0].Pairs {
		if f.Slow {
			slow = append(slow, f.HostPair().String())
		}
		if f.Asymmetric {
			asymmetric = append(asymmetric, f.HostPair().String())
		}
	}
	return slow, asymmetric
}

func TestSlowAndAsymmetricPairsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		hosts            int
		rate             func(suite.HostPair) float64
		slow, asymmetric []string
	}{
		"equal hosts": {5, func(suite.HostPair) float64 { return 9e9 }, nil, nil},
		"a slow host of three": {3, func(p suite.HostPair) float64 {
			if p.Has("h2") {
				return 3e9
			}
			return 9e9
		}, []string{"h0→h2", "h1→h2", "h2→h0", "h2→h1"}, nil},
		"a host that sends slowly": {4, func(p suite.HostPair) float64 {
			if p.From == "h1" {
				return 7e9
			}
			return 9e9
		}, []string{"h1→h0", "h1→h2", "h1→h3"}, []string{"h1→h0", "h1→h2", "h1→h3"}},
		"a difference below the limit": {4, func(p suite.HostPair) float64 {
			if p.From == "h1" {
				return 8.6e9
			}
			return 9e9
		}, nil, nil},
	} {
		r := report.Build(hostRun(t, c.hosts, 10, "all", c.rate))
		slow, asymmetric := marked(r)
		if !slices.Equal(slow, c.slow) || !slices.Equal(asymmetric, c.asymmetric) {
			t.Errorf("%s: slow %v and asymmetric %v, want %v and %v", name, slow, asymmetric, c.slow, c.asymmetric)
		}
		if want := max(1, len(c.slow)+len(c.asymmetric)); len(r.Findings) != want {
			t.Errorf("%s: %d findings, want %d: %q", name, len(r.Findings), want, r.Findings)
		}
		for _, p := range append(slow, asymmetric...) {
			from, _, _ := strings.Cut(p, "→")
			if text := strings.Join(r.Findings, "\n"); !strings.Contains(text, p+" is slow: ") && !strings.Contains(text, from+" to ") {
				t.Errorf("%s: no finding names %s: %s", name, p, text)
			}
		}
	}
}

// Of pairs that are exactly at the limit, at most 5 % of the runs may name one.
func TestPairsAtTheLimitAreRarelyNamed(t *testing.T) {
	const runs = 60
	wrong := 0
	for i := range runs {
		run, plan, samples := hostRun(t, 5, 8, "all", func(suite.HostPair) float64 { return 9e9 })
		rng := rand.New(rand.NewPCG(7, uint64(i)))
		for k := range samples {
			_, p, _ := suite.SplitPairID(samples[k].Scenario)
			mean := 9e9
			if p.Has("h4") { // eight of twenty pairs
				mean *= 0.9
			}
			samples[k].Metrics[sample.Throughput] = mean * math.Exp(0.03*rng.NormFloat64())
		}
		if slow, asymmetric := marked(report.Build(run, plan, samples)); len(slow)+len(asymmetric) > 0 {
			wrong++
		}
	}
	// The quartile is itself uncertain, so the bound is wider than 5 %.
	if wrong > runs/6 {
		t.Errorf("%d of %d runs name a pair that is at the limit, want %d at most", wrong, runs, runs/6)
	}
}

func TestAMatrixWithTooFewTrialsNamesNoPair(t *testing.T) {
	r := report.Build(hostRun(t, 3, 3, "all", func(p suite.HostPair) float64 {
		if p.From == "h0" {
			return 1e9
		}
		return 9e9
	}))
	if slow, asymmetric := marked(r); slow != nil || asymmetric != nil {
		t.Errorf("3 blocks name the slow pairs %v and the asymmetric pairs %v, want none", slow, asymmetric)
	}
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0], "named from 6 trials on") {
		t.Errorf("the findings are %q, want the number of trials that are needed", r.Findings)
	}
}

func TestPairsWithoutFiguresHaveTheReason(t *testing.T) {
	run, plan, samples := hostRun(t, 4, 6, "all", func(p suite.HostPair) float64 {
		if p.Has("h3") {
			return 0
		}
		return 9e9
	})
	run.Skipped = map[string]string{suite.PairID("raw/one", suite.HostPair{From: "h0", To: "h1"}): "host h0: no program"}
	samples = slices.DeleteFunc(samples, func(s sample.Sample) bool { return s.Scenario == "raw/one h0→h1" })
	r := report.Build(run, plan, samples)
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{
		"raw/one: no figure of h0→h1: host h0: no program.",
		"raw/one: no figure of h0→h3, h1→h3, h2→h3, h3→h0, h3→h1, h3→h2: agent-lost: node h9's agent has ended.",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	if r.Validity.Failed != 36 || r.Validity.Valid != 30 {
		t.Errorf("%d trials failed and %d count, want 36 and 30", r.Validity.Failed, r.Validity.Valid)
	}
	if len(r.Scenarios) != 12 || r.Scenarios[0].Skipped == "" {
		t.Errorf("the report has %d scenarios, want 12, the first skipped", len(r.Scenarios))
	}
	x := report.Matrices(r)[0].Tables[0]
	if x.Columns[4].Name != "h3" || x.Rows[0].Cells[4].Text != "none" || x.Rows[0].Cells[1].Text != "–" || x.Rows[1].Cells[3].Text == "" {
		t.Errorf("the matrix is %+v", x)
	}
}

// A run of 33 hosts has more pairs than scenarios that a report lists.
func TestALargeMatrixHasItsFiguresWithoutScenarios(t *testing.T) {
	run, plan, samples := hostRun(t, 33, 6, "all", func(p suite.HostPair) float64 {
		if p.From == "h9" {
			return 2e9
		}
		return 9e9
	})
	if !plan.Large() {
		t.Fatal("the plan is not large: the test does not test")
	}
	r := report.Build(run, plan, samples)
	if len(r.Scenarios) != 0 || r.Validity.Valid != len(samples) {
		t.Errorf("%d scenarios and %d trials that count, want none and %d", len(r.Scenarios), r.Validity.Valid, len(samples))
	}
	slow, _ := marked(r)
	if len(slow) != 32 || !strings.HasPrefix(slow[0], "h9→") {
		t.Errorf("the slow pairs are %v, want the 32 of h9 as the sender", slow)
	}
	if n := len(r.Findings); n != 42 { // 20 of each kind, and the number of the others
		t.Errorf("%d findings, want 42", n)
	}
}

func TestARingHasAMatrixWithoutOppositeDirections(t *testing.T) {
	r := report.Build(hostRun(t, 5, 6, "ring", func(suite.HostPair) float64 { return 9e9 }))
	if n := len(r.HostMatrices[0].Pairs); n != 5 {
		t.Fatalf("%d pairs, want 5", n)
	}
	for _, f := range r.HostMatrices[0].Pairs {
		if f.Figure == nil || f.Reverse != nil {
			t.Errorf("%v has the figure %v and the ratio %v to the opposite direction, want a figure alone", f.HostPair(), f.Figure, f.Reverse)
		}
	}
}

// The report of 100 hosts takes seconds at most.
func BenchmarkTheReportOf100Hosts(b *testing.B) {
	run, plan, samples := hostRun(b, 100, 6, "all", func(suite.HostPair) float64 { return 9e9 })
	for b.Loop() {
		if r := report.Build(run, plan, samples); r.HostMatrices[0].Blocks != 6 {
			b.Fatal("the report has no figures")
		}
	}
}

// Of two pairs the upper quartile is the faster pair's figure. In most blocks the other
// pair is faster here, so the ratios within blocks are below 1.
func TestTheSmallFiguresOfAMatrixAreRatiosOfItsFigures(t *testing.T) {
	run, plan, samples := hostRun(t, 2, 7, "all", func(suite.HostPair) float64 { return 1 })
	rates := map[string][]float64{"h0→h1": {10, 10, 10, 10, 9, 9, 9}, "h1→h0": {9.9, 9.9, 9.9, 9.9, 12, 12, 12}}
	for i := range samples {
		_, p, _ := suite.SplitPairID(samples[i].Scenario)
		samples[i].Metrics[sample.Throughput] = 1e9 * rates[p.From+"→"+p.To][samples[i].Block]
	}
	x := report.Matrices(report.Build(run, plan, samples))[0]
	for _, row := range x.Tables[0].Rows {
		for _, cell := range row.Cells[1:] {
			if want := map[string]string{"–": "", "10.0": "(1.00)", "9.90": "(0.99)"}[cell.Text]; cell.Range != want {
				t.Errorf("%s of a quartile of 10.0 has the ratio %q, want %q", cell.Text, cell.Range, want)
			}
		}
	}
	if !strings.Contains(x.Lead, "A pair is slow by its ratios within blocks") {
		t.Errorf("the lead does not say how pairs are judged: %s", x.Lead)
	}
}
