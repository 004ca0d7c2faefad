package report_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// around returns n values about centre, ±spread. Values of different seeds are not
// correlated.
func around(centre, spread float64, n, seed int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = centre * (1 + spread*float64((i*7+seed*3)%11-5)/5)
	}
	return values
}

func sentencesOf(plan suite.Plan, columns ...[]sample.Sample) []string {
	run := sample.Run{ID: "r", Status: sample.Complete}
	var samples []sample.Sample
	for _, c := range columns {
		samples = append(samples, c...)
	}
	return report.Build(run, plan, samples).Findings
}

// masked replaces the smallest detectable difference. Package stats tests that figure.
func masked(lines []string) []string {
	detectable := regexp.MustCompile(`difference of [0-9.]+ %`)
	var list []string
	for _, l := range lines {
		list = append(list, detectable.ReplaceAllString(l, "difference of N %"))
	}
	return list
}

// spread returns n values evenly from low to high.
func spread(low, high float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = low + (high-low)*float64(i)/float64(n-1)
	}
	return values
}

func TestAFindingHasThroughputAndCPU(t *testing.T) {
	_, plan := twoSystems()
	baseline := column("a/stream", sample.Throughput, spread(10e9, 10e9, 10)...)
	subject := column("b/stream", sample.Throughput, spread(9.5e9, 9.9e9, 10)...)
	for i := range baseline {
		baseline[i].Metrics[sample.SenderCPUPerByte] = 0.50
		subject[i].Metrics[sample.SenderCPUPerByte] = spread(0.525, 0.555, 10)[i]
		baseline[i].Metrics[sample.ReceiverCPUPerByte] = 0.40
		subject[i].Metrics[sample.ReceiverCPUPerByte] = spread(0.38, 0.43, 10)[i]
	}
	want := []string{"The bridge carries 3 % less than raw [2, 4] and costs the sender 8 % more CPU per byte [6, 10]; no difference shows in the receiver's CPU per byte [−2, 5 %; a difference of N % or more would have been detected]."}
	must.Equal(t, want, masked(sentencesOf(plan, baseline, subject)))
}

// A sentence about CPU alone must still name sender or receiver.
func TestAFindingOfCPUAloneNamesTheSystems(t *testing.T) {
	_, plan := twoSystems()
	baseline := column("a/stream", sample.Throughput, spread(10e9, 10e9, 10)...)
	subject := column("b/stream", sample.Throughput, spread(9.5e9, 10.5e9, 10)...)
	for i := range baseline {
		baseline[i].Metrics[sample.ReceiverCPUPerByte] = 0.50
		subject[i].Metrics[sample.ReceiverCPUPerByte] = spread(0.525, 0.555, 10)[i]
	}
	want := []string{"The bridge costs the receiver 8 % more CPU per byte than raw [6, 10]; no difference shows in throughput [−3, 3 %; a difference of N % or more would have been detected]."}
	must.Equal(t, want, masked(sentencesOf(plan, baseline, subject)))
}

// unconfirmed is a report of six blocks in which chance makes the receiver's CPU 5 %
// more or less. By chance it could be 5 % more in every block. So a difference of
// 8 % in every block is not certain.
func unconfirmed() *model.Report {
	_, plan := twoSystems()
	baseline := column("a/stream", sample.Throughput, 10e9, 10e9, 10e9, 10e9, 10e9, 10e9)
	subject := column("b/stream", sample.Throughput, 9.5e9, 9.6e9, 9.7e9, 9.7e9, 9.8e9, 9.9e9)
	for i := range baseline {
		baseline[i].Metrics[sample.SenderCPUPerByte], subject[i].Metrics[sample.SenderCPUPerByte] = 0.5, 0.54+0.001*float64(i)
		baseline[i].Metrics[sample.ReceiverCPUPerByte], subject[i].Metrics[sample.ReceiverCPUPerByte] = 0.4, 0.38+0.04*float64(i%2)
	}
	return report.Build(sample.Run{ID: "r"}, plan, append(baseline, subject...))
}

func TestADifferenceThatTheCorrectionDoesNotConfirmIsOnlySuggested(t *testing.T) {
	r := unconfirmed()
	if len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0], "The bridge carries 3 % less than raw [1, 5; suggested] and costs the sender ") || !strings.Contains(r.Findings[0], "; no difference shows in the receiver's CPU per byte [") {
		t.Errorf("the findings are %q, want one with a suggested and without a difference of the receiver's CPU", r.Findings)
	}
	for _, c := range r.Comparisons {
		if c.Distinct || c.Adjusted == nil || *c.Adjusted <= 0.05 {
			t.Errorf("%s: verdict %s, adjusted %v", c.Metric, c.Verdict, c.Adjusted)
		}
	}
}

// If only some ratios of a pair are certain, the sentence lists the others separately.
func TestAFindingSeparatesSureFromSuggestedCosts(t *testing.T) {
	_, plan := twoSystems()
	baseline := column("a/stream", sample.Throughput, spread(10e9, 10e9, 10)...)
	subject := column("b/stream", sample.Throughput, spread(9.5e9, 9.6e9, 10)...)
	for i := range baseline { // p of the sender is far above 0.05, of the receiver a little below
		baseline[i].Metrics[sample.SenderCPUPerByte], subject[i].Metrics[sample.SenderCPUPerByte] = 0.5, spread(0.49, 0.51, 10)[i]
		baseline[i].Metrics[sample.ReceiverCPUPerByte] = 0.5
		subject[i].Metrics[sample.ReceiverCPUPerByte] = 0.5 * (1 + []float64{-.01, -.02, -.05, .04, .03, .06, .07, .08, .09, .1}[i])
	}
	got := sentencesOf(plan, baseline, subject)
	if len(got) != 1 || !strings.HasPrefix(got[0], "The bridge carries 4.5 % less than raw [4.2, 4.8] and costs the receiver 3.9 % more CPU per byte [0.3, 8.0; suggested]; no difference shows in the sender's CPU per byte [−1, 1 %; a difference of ") {
		t.Errorf("the findings are %q, want one that names the difference, the suggested one, and no difference of the sender's CPU", got)
	}
}

func TestFindingClaimsNoDifferenceThatTheIntervalDoesNotShow(t *testing.T) {
	_, plan := twoSystems()
	got := sentencesOf(plan,
		column("a/stream", sample.Throughput, around(10e9, 0.03, 8, 0)...),
		column("b/stream", sample.Throughput, around(10e9, 0.03, 8, 1)...))
	if len(got) != 1 || !strings.HasPrefix(got[0], "Between the bridge and raw no difference shows in throughput [−2, 2 %; a difference of ") || !strings.HasSuffix(got[0], " % or more would have been detected].") {
		t.Errorf("the findings are %q, want that no difference shows, with the detectable difference", got)
	}
}

func TestAFindingOfTooFewTrialsSaysSo(t *testing.T) {
	_, plan := twoSystems()
	for n, want := range map[int]string{
		1: "The bridge carries 10.0 % less than raw [1 trial, too few to tell].",
		3: "The bridge carries 10 % less than raw [5, 15; 3 trials, too few to tell].",
	} {
		got := sentencesOf(plan,
			column("a/stream", sample.Throughput, []float64{10, 10, 10}[:n]...),
			column("b/stream", sample.Throughput, []float64{9, 8.5, 9.5}[:n]...))
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("n = %d: %s", n, diff)
		}
	}
}

func TestFindingsOfTheQuickSuite(t *testing.T) {
	run, plan, samples := reporttest.Sized(10)
	got := report.Build(run, plan, samples).Findings
	if len(got) != 3 {
		t.Fatalf("%d sentences: %q", len(got), got)
	}
	for i, parts := range [][]string{
		{"The bridge carries 3.3 % less than raw [", "], completes 15.2 % fewer transactions [", "], has 17.6 % more median latency [", "], costs the sender 10.6 % more CPU per byte [", "], costs the receiver 8.1 % less CPU per byte [", "], costs the sender 17.8 % more CPU per packet ["},
		// Both endpoints are on one node, so the sentence does not mention the sender's CPU.
		{"The bridge on one node carries 25.8 % more than raw [", "], completes 29.2 % more transactions [", "], has 22.5 % less median latency ["},
		{"Kernel VXLAN carries 21.4 % less than raw [", "], completes 27.9 % fewer transactions [", "], costs the sender 46.7 % more CPU per byte ["},
	} {
		for _, part := range parts {
			if !strings.Contains(got[i], part) {
				t.Errorf("sentence %d lacks %q: %s", i, part, got[i])
			}
		}
	}
	if strings.Contains(got[1], "sender") {
		t.Errorf("the sentence claims a sender's cost, but both endpoints are on one node: %s", got[1])
	}
}

func TestFindingNamesTheGroupsWhereOneSystemHasTwo(t *testing.T) {
	_, plan := twoSystems()
	plan.Scenarios[0].System = "bridge"
	got := sentencesOf(plan,
		column("a/stream", sample.Throughput, around(1, 0.02, 6, 0)...),
		column("b/stream", sample.Throughput, around(1, 0.02, 6, 2)...))
	if len(got) != 1 || !strings.HasPrefix(got[0], "Between b and a no difference shows") {
		t.Errorf("the findings are %q, want that no difference between b and a shows", got)
	}
}

func TestFindingNamesTheWorkloadWhereThereAreSeveral(t *testing.T) {
	_, plan := twoSystems()
	for _, group := range []string{"a", "b"} {
		sc := plan.Scenarios[0]
		if group == "b" {
			sc = plan.Scenarios[1]
		}
		sc.ID, sc.Workload.Name = group+"/small", "small"
		plan.Scenarios = append(plan.Scenarios, sc)
	}
	plan.Comparisons = append(plan.Comparisons, suite.Comparison{Baseline: "a/small", Subject: "b/small"})
	got := sentencesOf(plan,
		column("a/stream", sample.Throughput, spread(1, 1, 8)...), column("b/stream", sample.Throughput, spread(.5, .56, 8)...),
		column("a/small", sample.Throughput, spread(1, 1, 8)...), column("b/small", sample.Throughput, spread(.7, .76, 8)...))
	want := []string{"In stream, the bridge carries 47 % less than raw [45, 49].", "In small, the bridge carries 27 % less than raw [25, 29]."}
	must.Equal(t, want, got)
}

func TestAFindingHasTheReasonWhyNothingIsCompared(t *testing.T) {
	run, plan := twoSystems()
	run.Skipped = map[string]string{"b/stream": "no vxlan"}
	r := report.Build(run, plan, column("a/stream", sample.Throughput, 1, 2, 3, 4, 5, 6))
	want := []string{"The bridge cannot be compared with raw: b/stream was skipped: no vxlan."}
	must.Equal(t, want, r.Findings)
}

// systemsAgainstRaw is a plan and samples of systems with these throughputs, against one of 1.
func systemsAgainstRaw(throughputs ...[]float64) (suite.Plan, [][]sample.Sample) {
	plan := suite.Plan{Scenarios: []suite.Scenario{{ID: "raw/stream", System: "raw"}}}
	columns := [][]sample.Sample{column("raw/stream", sample.Throughput, spread(1, 1, 10)...)}
	for i, values := range throughputs {
		system := string(rune('u' + i))
		columns = append(columns, column(system+"/stream", sample.Throughput, values...))
		plan.Scenarios = append(plan.Scenarios, suite.Scenario{ID: system + "/stream", System: system})
		plan.Comparisons = append(plan.Comparisons, suite.Comparison{Baseline: "raw/stream", Subject: system + "/stream"})
	}
	return plan, columns
}

func TestEveryConfirmedDifferenceIsAmongTheFindings(t *testing.T) {
	plan, columns := systemsAgainstRaw(spread(.95, .95, 10), spread(.9, .9, 10), spread(.98, 1.02, 10), spread(.5, .5, 10), spread(.99, .99, 10), spread(.7, .7, 10))
	want := []string{"u carries 5.0 % less than raw [5.0, 5.0].", "v carries 10.0 % less than raw [10.0, 10.0].", "x carries 50.0 % less than raw [50.0, 50.0].",
		"y carries 1.0 % less than raw [1.0, 1.0].", "z carries 30.0 % less than raw [30.0, 30.0]. (1 further in the table.)"}
	must.Equal(t, want, sentencesOf(plan, columns...))
}

func TestConfirmedDifferencesComeBeforeOthersAndFourAreEnough(t *testing.T) {
	none := func(seed int) []float64 { return around(1, 0.03, 10, seed) }
	plan, columns := systemsAgainstRaw(none(1), none(2), spread(.5, .5, 10), none(3), none(4))
	got := sentencesOf(plan, columns...)
	if len(got) != 4 || !strings.HasPrefix(got[0], "w carries 50.0 % less than raw") || !strings.HasPrefix(got[1], "Between u and raw ") || !strings.HasSuffix(got[3], "(1 further in the table.)") {
		t.Errorf("the findings are %q, want 4, the certain difference of w first, and the number of further ones", got)
	}
}

// A difference of the median latency is confirmed, one of the transactions is suggested.
func TestAConfirmedLatencyIsStatedBeforeASuggestedThroughput(t *testing.T) {
	_, plan := twoSystems()
	for i := range plan.Scenarios {
		plan.Scenarios[i].Workload.Kind = suite.TCPRR
	}
	baseline := column("a/stream", sample.Transactions, spread(1000, 1000, 10)...)
	subject := column("b/stream", sample.Transactions, 990, 980, 950, 1040, 1030, 1060, 1070, 1080, 1090, 1100)
	for i := range baseline {
		baseline[i].Metrics[sample.LatencyP50], subject[i].Metrics[sample.LatencyP50] = 100, spread(92.5, 93.5, 10)[i]
		baseline[i].Metrics[sample.LatencyP99], subject[i].Metrics[sample.LatencyP99] = 100, spread(97, 103, 10)[i]
	}
	got := sentencesOf(plan, baseline, subject)
	if len(got) != 1 || !strings.HasPrefix(got[0], "The bridge has 7.0 % less median latency than raw [6.7, 7.3] and completes ") || !strings.Contains(got[0], "; suggested]") {
		t.Errorf("the findings are %q, want one on the median latency, with a suggested difference", got)
	}
}

// The CPU time of request/response is confirmed in three units, and its throughput follows
// from the transactions.
func TestADifferenceIsStatedInOneUnit(t *testing.T) {
	_, plan := twoSystems()
	for i := range plan.Scenarios {
		plan.Scenarios[i].Workload.Kind = suite.TCPRR
	}
	baseline, subject := column("a/stream", sample.Transactions, spread(1000, 1000, 10)...), column("b/stream", sample.Transactions, spread(900, 910, 10)...)
	for i := range baseline {
		for _, m := range []sample.Metric{sample.Throughput, sample.SenderCPU, sample.SenderCPUPerByte, sample.SenderCPUPerPacket} {
			baseline[i].Metrics[m], subject[i].Metrics[m] = 100, spread(92.5, 93.5, 10)[i]
		}
	}
	want := []string{"The bridge completes 9.5 % fewer transactions than raw [9.2, 9.8] and costs the sender 7.0 % less CPU per packet [6.7, 7.3]."}
	must.Equal(t, want, sentencesOf(plan, baseline, subject))
}

// Only the latency of many requests was compared: the brief finding states it.
func TestABriefFindingWithoutAMainFigureStatesTheOthers(t *testing.T) {
	_, plan := twoSystems()
	baseline, subject := column("a/stream", sample.LatencyP99, spread(100, 100, 10)...), column("b/stream", sample.LatencyP99, spread(92.5, 93.5, 10)...)
	for i := range baseline {
		baseline[i].Metrics[sample.SenderCPU], subject[i].Metrics[sample.SenderCPU] = 50, spread(40, 40.5, 10)[i]
	}
	want := []string{"The bridge has 7.0 % less latency p99 than raw and uses 19.5 % less CPU on the sender."}
	must.Equal(t, want, sentences.Brief(report.Build(sample.Run{ID: "r"}, plan, append(baseline, subject...))))
}

func TestABriefFindingHasNoIntervals(t *testing.T) {
	if said := sentences.Brief(reporttest.Quick())[2]; !strings.HasSuffix(said, " more CPU per byte; there are too few trials to tell a difference in transactions.") {
		t.Errorf("the brief finding is %q, want the end that there are too few trials", said)
	}
	for _, sentence := range sentences.Brief(reporttest.Quick()) {
		if !strings.Contains(sentence, " % ") || strings.Contains(sentence, "[") {
			t.Errorf("the brief finding has an interval: %s", sentence)
		}
	}
	_, plan := twoSystems()
	r := report.Build(sample.Run{ID: "r"}, plan, append(column("a/stream", sample.Throughput, around(1, 0.03, 8, 0)...), column("b/stream", sample.Throughput, around(1, 0.03, 8, 1)...)...))
	must.Equal(t, []string{"Between the bridge and raw no difference shows in throughput."}, sentences.Brief(r))
}

func TestFiguresTooNoisyToJudgeAreListedLast(t *testing.T) {
	_, plan := twoSystems()
	baseline := column("a/stream", sample.Throughput, around(10e9, 0.01, 8, 0)...)
	subject := column("b/stream", sample.Throughput, spread(9e9, 9.1e9, 8)...)
	for i := range baseline {
		baseline[i].Metrics[sample.SenderCPUPerByte], subject[i].Metrics[sample.SenderCPUPerByte] = 1, []float64{.1, 20, .05, 9, .2, 30, .1, 8}[i]
		baseline[i].Metrics[sample.ReceiverCPUPerByte], subject[i].Metrics[sample.ReceiverCPUPerByte] = 1, []float64{1.01, .99, 1.02, .98, 1.01, .99, 1, 1}[i]
	}
	r := report.Build(sample.Run{ID: "r"}, plan, append(baseline, subject...))
	if c := r.Ratio("b/stream", sample.SenderCPUPerByte); c.Verdict != model.TooNoisy || *c.Detectable <= model.NoisyAbove {
		t.Fatalf("the verdict is %s with a detectable difference of %v", c.Verdict, *c.Detectable)
	}
	said := r.Findings[0]
	if !strings.HasSuffix(said, "] are too noisy to judge.") || !strings.Contains(said, "; no difference shows in the receiver's CPU per byte [") {
		t.Errorf("the finding is %q, want that figures are too noisy to judge", said)
	}
	if brief := sentences.Brief(r)[0]; !strings.HasSuffix(brief, "no difference shows in the receiver's CPU per byte; the figures of the sender's CPU per byte are too noisy to judge.") {
		t.Errorf("the brief finding is %q, want that the sender's CPU per byte is too noisy to judge", brief)
	}
}

func TestTheFastestIsNamedOnlyIfIntervalsDoNotOverlap(t *testing.T) {
	_, plan := twoSystems()
	plan.Comparisons = nil
	apart := sentencesOf(plan,
		column("a/stream", sample.Throughput, 9.5e9, 9.5e9, 9.5e9, 9.5e9, 9.5e9, 9.6e9),
		column("b/stream", sample.Throughput, 8.1e9, 8.1e9, 8.2e9, 8.2e9, 8.3e9, 8.3e9))
	must.Equal(t, []string{"a/stream reaches 9.50 Gbit/s [9.50, 9.60], the most throughput; b/stream reaches 8.20 Gbit/s [8.10, 8.30]."}, apart)
	overlapping := sentencesOf(plan,
		column("a/stream", sample.Throughput, 9e9, 9e9, 9e9, 9e9, 9e9, 10e9),
		column("b/stream", sample.Throughput, 8e9, 8e9, 8e9, 8e9, 8e9, 9.5e9))
	if len(overlapping) != 1 || !strings.HasPrefix(overlapping[0], "No scenario certainly has the most throughput: a/stream reaches ") {
		t.Errorf("the findings are %q, want that no scenario certainly has the most throughput", overlapping)
	}
	few := sentencesOf(plan, column("a/stream", sample.Throughput, 9e9, 9e9))
	must.Equal(t, []string{"a/stream reaches 9.00 Gbit/s [9.00, 9.00]."}, few)
}

func TestABoundBelow100PercentIsNotRoundedTo100(t *testing.T) {
	for want, iv := range map[string]quantity.Interval{
		"97 % [95, 99]":             {Median: 0.97, Low: 0.95, High: 0.99, N: 6},
		"98.0 % [96.0, 99.7]":       {Median: 0.98, Low: 0.96, High: 0.997, N: 6},
		"99.6 % [99.4, 99.8]":       {Median: 0.996, Low: 0.994, High: 0.998, N: 6},
		"99.95 % [99.93, 99.97]":    {Median: 0.9995, Low: 0.9993, High: 0.9997, N: 6},
		"100 % [98, 102]":           {Median: 1, Low: 0.98, High: 1.02, N: 6},
		"100.0 % [100.0, 100.0]":    {Median: 1, Low: 1, High: 1, N: 6},
		"90.0 %":                    {Median: 0.9, Low: 0.9, High: 0.9, N: 1},
		"250 % [240, 260]":          {Median: 2.5, Low: 2.4, High: 2.6, N: 9},
		"99.998 % [99.997, 99.999]": {Median: 0.99998, Low: 0.99997, High: 0.99999, N: 9},
	} {
		if got := iv.Percent(); got != want {
			t.Errorf("Percent of %+v = %q, want %q", iv, got, want)
		}
	}
}

func TestABriefFindingOfNoiseClaimsNothing(t *testing.T) {
	r, c := metricOf(t, sample.Throughput, spread(1e9, 1e9, 8), []float64{.1e9, 20e9, .05e9, 9e9, .2e9, 30e9, .1e9, 8e9})
	if c.Verdict != model.TooNoisy {
		t.Fatalf("the verdict is %s", c.Verdict)
	}
	must.Equal(t, []string{"Between the bridge and raw the figures are too noisy to judge."}, sentences.Brief(r))
}

func TestARunWithoutFiguresRefersToNoSection(t *testing.T) {
	_, plan := twoSystems()
	want := []string{"No trial yielded figures that count, so there are no findings."}
	for _, plan := range []suite.Plan{plan, {Scenarios: plan.Scenarios, Matrix: &suite.Matrix{Hosts: []string{"n1", "n2"}}}} {
		must.Equal(t, want, sentencesOf(plan))
	}
}

func TestTheFastestScenarioIsNotCertainWithFewTrialsOrBesideAWideThirdInterval(t *testing.T) {
	_, plan := steps("a", "b", "c")
	plan.Ladders, plan.Comparisons = nil, nil
	a, b := column("a/stream", sample.Throughput, around(9.5e9, 0.01, 8, 0)...), column("b/stream", sample.Throughput, around(8.2e9, 0.01, 8, 1)...)
	for what, samples := range map[string][]sample.Sample{
		"one trial each":       slices.Concat(a[:1], b[:1]),
		"a third is as fast":   slices.Concat(a, b, column("c/stream", sample.Throughput, around(8e9, 0.4, 8, 2)...)),
		"one trial of a third": slices.Concat(a, b, column("c/stream", sample.Throughput, 8e9)),
	} {
		got := report.Build(sample.Run{}, plan, samples).Findings
		if len(got) != 1 || !strings.HasPrefix(got[0], "No scenario certainly has the most throughput: a/stream reaches ") {
			t.Errorf("%s: the findings are %q, want that no scenario certainly has the most throughput", what, got)
		}
	}
}
