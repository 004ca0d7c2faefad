package report_test

import (
	"encoding/csv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// noisyBlock is one recorded block of suite aa, which has one system under two names.
type noisyBlock map[string]sample.Metrics // by scenario

// recordedNoise reads the complete blocks of each run from the file that `go run
// ./internal/performance -only honesty -noise FILE` wrote.
func recordedNoise(t testing.TB) (runs [][]noisyBlock) {
	t.Helper()
	f, err := os.Open("testdata/noise.csv")
	must.Succeed(t, err)
	defer f.Close()
	rows := must.Get(csv.NewReader(f).ReadAll())(t)
	blocks := map[string]noisyBlock{}
	var order [][2]string // run, key
	for _, row := range rows[1:] {
		key := row[0] + "/" + row[1]
		if blocks[key] == nil {
			blocks[key] = noisyBlock{}
			order = append(order, [2]string{row[0], key})
		}
		ms := sample.Metrics{}
		for i, text := range row[3:] {
			if text == "" {
				continue
			}
			if ms[sample.Metric(rows[0][3+i])], err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
		blocks[key][row[2]] = ms
	}
	last := ""
	for _, o := range order {
		if o[0] != last {
			runs, last = append(runs, nil), o[0]
		}
		if b := blocks[o[1]]; len(b) == 4 {
			runs[len(runs)-1] = append(runs[len(runs)-1], b)
		}
	}
	if n := len(slices.Concat(runs...)); len(runs) != 20 || n < 150 {
		t.Fatalf("%d runs with %d complete blocks are recorded", len(runs), n)
	}
	return runs
}

// rehearse makes a run of suite aa from n recorded blocks, drawn without repeats. In
// each block the two names are assigned at random, so any difference is chance. Then
// change modifies b.
func rehearse(rng *rand.Rand, noise []noisyBlock, n int, change func(sample.Metrics)) *model.Report {
	var blocks []noisyBlock
	for _, i := range rng.Perm(len(noise))[:n] {
		drawn := noisyBlock{}
		for _, kind := range []string{"stream", "rr"} {
			a, b := noise[i]["a/"+kind], noise[i]["b/"+kind]
			if rng.IntN(2) == 1 {
				a, b = b, a
			}
			changed := maps.Clone(b)
			if change != nil {
				change(changed)
			}
			drawn["a/"+kind], drawn["b/"+kind] = a, changed
		}
		blocks = append(blocks, drawn)
	}
	return aaReport(blocks)
}

// aaReport builds the report of a run of suite aa.
func aaReport(blocks []noisyBlock) *model.Report {
	plan := suite.Plan{Suite: "aa", Nodes: 2, Trials: len(blocks)}
	for _, id := range []string{"a/stream", "a/rr", "b/stream", "b/rr"} {
		w := suite.Workload{Name: "stream", Kind: suite.TCPStream}
		if strings.HasSuffix(id, "rr") {
			w = suite.Workload{Name: "rr", Kind: suite.TCPRR}
		}
		plan.Scenarios = append(plan.Scenarios, suite.Scenario{ID: id, System: "bridge", Placement: suite.TwoNodes, Workload: w})
	}
	plan.Comparisons = []suite.Comparison{{Baseline: "a/stream", Subject: "b/stream"}, {Baseline: "a/rr", Subject: "b/rr"}}
	var samples []sample.Sample
	for i, b := range blocks {
		for id, metrics := range b {
			samples = append(samples, sample.Sample{Scenario: id, Block: i, Metrics: metrics})
		}
	}
	return report.Build(sample.Run{Status: sample.Complete}, plan, samples)
}

// claims reports whether a comparison of the report has the verdict Differs.
func claims(r *model.Report) bool {
	return slices.ContainsFunc(r.Comparisons, func(c model.Comparison) bool { return c.Verdict == model.Differs })
}

// If each run has a false alarm with a probability of 5 %, four or more of 20 runs have
// one with a probability of 1.6 %.
func TestTheRecordedRunsRarelyClaimADifference(t *testing.T) {
	alarmed := 0
	for _, blocks := range recordedNoise(t) {
		if claims(aaReport(blocks)) {
			alarmed++
		}
	}
	t.Logf("%d of 20 runs claim a difference", alarmed)
	if alarmed > 3 {
		t.Errorf("%d of 20 runs claim a difference, want 3 at most", alarmed)
	}
}

// The test compares a system with itself in a thousand runs, with noise recorded on a
// real machine. It counts the false alarms of each verdict.
func TestFalseAlarmsOverRecordedNoiseAreAsRareAsClaimed(t *testing.T) {
	must.Long(t)
	noise := slices.Concat(recordedNoise(t)...)
	rng := rand.New(rand.NewPCG(2026, 11))
	const runs = 1000
	tests, alone, interval, alarmed, headlines := 0, 0, 0, 0, 0
	for range runs {
		r := rehearse(rng, noise, 10, nil)
		headline := false
		for _, c := range r.Comparisons {
			if !verdicts.Headline(c.Metric, c.Subject == "b/rr") {
				continue
			}
			tests++
			headline = headline || c.Verdict == model.Differs
			if *c.P <= 0.05 {
				alone++
			}
			if c.Ratio.Low > 1 || c.Ratio.High < 1 {
				interval++
			}
		}
		if claims(r) {
			alarmed++
		}
		if headline {
			headlines++
		}
	}
	share := func(n, of int) float64 { return float64(n) / float64(of) }
	t.Logf("%d runs, %d tests: p ≤ 0.05 in %.1f %%, the interval excludes 1 in %.1f %%, a difference claimed in %.1f %% of the runs, in a headline in %.1f %%",
		runs, tests, 100*share(alone, tests), 100*share(interval, tests), 100*share(alarmed, runs), 100*share(headlines, runs))
	if tests != 4*runs {
		t.Fatalf("%d tests, want 4 a run", tests)
	}
	for name, s := range map[string]float64{"p": share(alone, tests), "interval": share(interval, tests)} {
		if s < 0.01 || s > 0.09 {
			t.Errorf("%s: %.1f %% false alarms, want 1 to 9 %%", name, 100*s)
		}
	}
	if share(alarmed, runs) > 0.09 || share(headlines, runs) > 0.09 {
		t.Errorf("%d of %d runs claim a difference, %d in a headline", alarmed, runs, headlines)
	}
}

// A difference of the size that the report calls detectable must show in four of five
// runs with the same noise. With more trials smaller differences must show.
func TestDetectableDifferencesAreFoundOverRecordedNoise(t *testing.T) {
	must.Long(t)
	noise := slices.Concat(recordedNoise(t)...)
	rng := rand.New(rand.NewPCG(2026, 12))
	const runs = 100
	for _, m := range []sample.Metric{sample.Throughput, sample.Transactions, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte} {
		comparison := func(trials int, change float64) model.Comparison {
			r := rehearse(rng, noise, trials, func(ms sample.Metrics) {
				if v, ok := ms[m]; ok {
					ms[m] = v * (1 + change)
				}
			})
			return r.Comparisons[slices.IndexFunc(r.Comparisons, func(c model.Comparison) bool { return c.Metric == m })]
		}
		found := func(trials int, change float64) (n int) {
			for range runs {
				if c := comparison(trials, change); *c.P <= 0.05 && c.Ratio.Median > 1 {
					n++
				}
			}
			return n
		}
		var said []float64
		for range runs {
			said = append(said, *comparison(10, 0).Detectable)
		}
		slices.Sort(said)
		detectable := said[runs/2]
		shown := found(10, detectable)
		few, many := found(10, 0.03), found(40, 0.03)
		t.Logf("%s: 10 trials could show %.1f %% and did in %d of %d runs; 3 %% in %d, with 40 trials in %d", m, 100*detectable, shown, runs, few, many)
		if shown < 65 || shown > 95 {
			t.Errorf("%s: a difference of %.1f %%, said to be detectable, shows in %d of %d runs; want about 80", m, 100*detectable, shown, runs)
		}
		if many <= few {
			t.Errorf("%s: 3 %% shows in %d runs of 10 trials and in %d of 40", m, few, many)
		}
	}
}
