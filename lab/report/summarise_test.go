package report_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// twoSystems returns a plan that compares b with a. Tests make its samples.
func twoSystems() (sample.Run, suite.Plan) {
	return sample.Run{ID: "r", Suite: "s", Status: sample.Complete}, suite.Plan{
		Suite: "s", Systems: reporttest.Systems(),
		Scenarios: []suite.Scenario{
			{ID: "a/stream", System: "raw", Placement: suite.TwoNodes, Workload: suite.Workload{Name: "stream"}},
			{ID: "b/stream", System: "bridge", Placement: suite.TwoNodes, Workload: suite.Workload{Name: "stream"}},
		},
		Comparisons: []suite.Comparison{{Title: "cost", Baseline: "a/stream", Subject: "b/stream"}},
	}
}

// column makes a sample with this metric for each value, in consecutive blocks.
func column(scenario string, m sample.Metric, values ...float64) []sample.Sample {
	var list []sample.Sample
	for block, v := range values {
		list = append(list, sample.Sample{Scenario: scenario, Block: block, Metrics: sample.Metrics{m: v}})
	}
	return list
}

func row(t *testing.T, r *model.Report, id string) *model.Scenario {
	t.Helper()
	for i := range r.Scenarios {
		if r.Scenarios[i].ID == id {
			return &r.Scenarios[i]
		}
	}
	t.Fatalf("the report has no scenario %s", id)
	return nil
}

func expectNote(t *testing.T, r *model.Report, part string) {
	t.Helper()
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, part) }) {
		t.Errorf("the notes lack %q: %q", part, r.Notes)
	}
}

func TestRowsFollowThePlanAndCountTrialsFailuresAndSkips(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	r := report.Build(run, plan, samples)
	var got []string
	for _, s := range r.Scenarios {
		got = append(got, fmt.Sprintf("%s %d %d %v %d", s.ID, s.Trials, s.Failed, s.Skipped != "", len(s.Samples)))
	}
	want := []string{
		"raw/stream 6 0 false 6", "raw/rr 6 0 false 6",
		"bridge/stream 6 0 false 7", "bridge/rr 6 0 false 6", // one repeated
		"bridge-colocated/stream 6 0 false 6", "bridge-colocated/rr 6 0 false 6",
		"vxlan/stream 6 0 false 6", "vxlan/rr 5 1 false 7", // one failed twice
		"macvlan/stream 0 0 true 0",
	}
	must.Equal(t, want, got)
	if !strings.Contains(row(t, r, "macvlan/stream").Skipped, "modprobe macvlan") {
		t.Error("the skipped scenario has no reason")
	}
}

func TestTheLastAttemptOfABlockThatCountsIsItsFigure(t *testing.T) {
	run, plan := twoSystems()
	plan.Trials = 6
	again := func(block, attempt int, v float64, failure *sample.Failure, gates ...sample.Gate) sample.Sample {
		return sample.Sample{Scenario: "a/stream", Block: block, Attempt: attempt, Failure: failure, Gates: gates, Metrics: sample.Metrics{sample.Throughput: v}}
	}
	failed, gate := &sample.Failure{Kind: sample.Invalid}, sample.Gate{Name: sample.ForeignCPU, Value: 31, Limit: 3, Unit: "%", Message: "31 % foreign"}
	samples := []sample.Sample{
		again(0, 1, 20, nil), again(0, 0, 10, nil), // stored out of order
		again(1, 0, 30, nil), again(1, 1, 99, failed),
		again(2, 0, 99, failed), again(2, 1, 40, nil),
		again(3, 0, 99, failed), again(3, 1, 98, nil, gate), // never counts
		{Scenario: "not/planned", Metrics: sample.Metrics{sample.Throughput: 1}},
	}
	beside := again(4, 0, 97, nil) // a block that has nothing but a profile
	beside.Profiled = true
	r := report.Build(run, plan, append(samples, beside))
	got := row(t, r, "a/stream")
	if got.Trials != 3 || got.Failed != 1 || got.Throughput == nil || got.Throughput.Median != 30 || got.Throughput.N != 3 {
		t.Errorf("trials %d, failed %d, throughput %+v, want 3, 1 and the median of 20, 30 and 40", got.Trials, got.Failed, got.Throughput)
	}
	if len(got.Samples) != 9 || len(got.Counting()) != 3 {
		t.Errorf("%d samples of which %d count, want every one of 9, and 3", len(got.Samples), len(got.Counting()))
	}
	want := model.Validity{Attempts: 8, Valid: 4, Failed: 3, Gated: 1, Profiled: 1, Missing: map[string]int{"a/stream": 3, "b/stream": 6},
		Gates: []model.GateCount{{Name: sample.ForeignCPU, Trials: 1, Worst: gate}}}
	must.Equal(t, want, r.Validity)
}

func TestFiguresAreMediansWithOrderStatisticIntervals(t *testing.T) {
	run, plan := twoSystems()
	r := report.Build(run, plan, column("a/stream", sample.Throughput, 7, 3, 9, 1, 5, 10, 2, 8, 6, 4))
	got := row(t, r, "a/stream").Throughput
	if got == nil || got.Median != 5.5 || got.Low != 2 || got.High != 9 || got.N != 10 || math.Abs(got.Level-(1-2*11.0/1024)) > 1e-12 {
		t.Errorf("got %+v", got)
	}
}

func TestEveryMetricOfASampleIsInItsRow(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	r := report.Build(run, plan, samples)
	for i := range r.Scenarios {
		sc := &r.Scenarios[i]
		text := must.Get(json.Marshal(sc))(t)
		var keys map[string]any
		must.Succeed(t, json.Unmarshal(text, &keys))
		for _, info := range sample.Known() {
			measured := slices.ContainsFunc(sc.Samples, func(s sample.Sample) bool { _, ok := s.Metrics[info.Metric]; return ok })
			_, own := keys[string(info.Metric)]
			_, other := sc.Metrics[info.Metric]
			latency := strings.HasPrefix(string(info.Metric), "latency_ns_p") || info.Metric == sample.LatencyMax
			if reported := own || other || latency && sc.Latency != nil; reported != measured {
				t.Errorf("%s: %s measured %v, reported %v", sc.ID, info.Metric, measured, reported)
			}
			if own && other {
				t.Errorf("%s: %s is reported twice", sc.ID, info.Metric)
			}
		}
	}
}

func TestCountersAreSummedOverTrials(t *testing.T) {
	run, plan := twoSystems()
	samples := column("a/stream", sample.Retransmits, 3, 0, 4)
	samples[1].Metrics[sample.Errors] = 2
	r := report.Build(run, plan, samples)
	got := row(t, r, "a/stream")
	if got.Retransmits == nil || *got.Retransmits != 7 || got.Errors == nil || *got.Errors != 2 {
		t.Errorf("retransmits %v, errors %v, want 7 and 2", got.Retransmits, got.Errors)
	}
	if other := row(t, r, "b/stream"); other.Retransmits != nil || other.Throughput != nil || other.Latency != nil || other.Metrics != nil {
		t.Errorf("figures of a scenario without samples: %+v", other)
	}
}

// All parts of a report show the same figure of a percentile: the median over the
// trials. The ratio is of this figure, too.
func TestLatencyIsTheSameFigureEverywhere(t *testing.T) {
	run, plan, samples := reporttest.Rigorous()
	r := report.Build(run, plan, samples)
	var p50, top []float64
	for _, s := range samples {
		if s.Scenario == "raw/rr" && s.Counts() {
			p50, top = append(p50, s.Metrics[sample.LatencyP50]), append(top, s.Metrics[sample.LatencyMax])
		}
	}
	want, _, _ := stats.Median(p50)
	sc := row(t, r, "raw/rr")
	for name, got := range map[string]float64{
		"scenario": *sc.Latency.P50, "metric": sc.Interval(sample.LatencyP50).Median,
		"ladder": r.Ladders[1].Steps[0].Cost(sample.LatencyP50).Figure.Median, "published": r.Published[2].Measured.Median,
	} {
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if longest, _, _ := stats.Median(top); *sc.Latency.Max != longest {
		t.Errorf("max %v, want %v", *sc.Latency.Max, longest)
	}
}

func TestRatiosArePairedWithinBlocks(t *testing.T) {
	run, plan := twoSystems()
	// Both drift alike; block 3 of the subject is missing.
	a := column("a/stream", sample.Throughput, 10, 30, 20, 1000, 15, 25, 12)
	b := column("b/stream", sample.Throughput, 9, 27, 18, 1, 13.5, 22.5, 10.8)
	b = slices.Delete(b, 3, 4)
	r := report.Build(run, plan, append(b, a...))
	if len(r.Comparisons) != 1 {
		t.Fatalf("%d comparisons", len(r.Comparisons))
	}
	c := r.Comparisons[0]
	if c.Baseline != "a/stream" || c.Subject != "b/stream" || c.Title != "cost" || c.Metric != sample.Throughput {
		t.Errorf("compares %+v", c)
	}
	if math.Abs(c.Ratio.Median-0.9) > 1e-12 || math.Abs(c.Ratio.Low-0.9) > 1e-12 || c.Ratio.N != 6 || c.Ratio.Level != 1-2.0/64 || !c.Distinct {
		t.Errorf("ratio %+v, distinct %v", c.Ratio, c.Distinct)
	}
}

func TestTooFewTrialsAreNeverDistinct(t *testing.T) {
	run, plan := twoSystems()
	for n := 1; n <= 7; n++ {
		ones, halves := make([]float64, n), make([]float64, n)
		for i := range n {
			ones[i], halves[i] = 1, 0.5
		}
		r := report.Build(run, plan, append(column("a/stream", sample.Throughput, ones...), column("b/stream", sample.Throughput, halves...)...))
		if got := r.Comparisons[0].Distinct; got != (n >= 6) {
			t.Errorf("n = %d: distinct %v", n, got)
		}
	}
}

func TestComparisonsCoverTheMetricsOfCostThatBothSidesHave(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	r := report.Build(run, plan, samples)
	got := make(map[string][]sample.Metric)
	for _, c := range r.Comparisons {
		got[c.Subject] = append(got[c.Subject], c.Metric)
	}
	cpu := []sample.Metric{sample.SenderCPU, sample.ReceiverCPU}
	stream := slices.Concat([]sample.Metric{sample.Throughput}, cpu, []sample.Metric{
		sample.SenderCPUPerByte, sample.ReceiverCPUPerByte, sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket})
	rr := slices.Concat([]sample.Metric{sample.Transactions, sample.LatencyP50, sample.LatencyP99}, cpu,
		[]sample.Metric{sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket})
	for id, want := range map[string][]sample.Metric{"bridge/stream": stream, "vxlan/stream": stream, "bridge/rr": rr, "vxlan/rr": rr} {
		if diff := cmp.Diff(want, got[id]); diff != "" {
			t.Errorf("the metrics of %s differ: %s", id, diff)
		}
	}
}

func TestBaselineOfZeroHasNoRatioAndSaysSo(t *testing.T) {
	run, plan := twoSystems()
	r := report.Build(run, plan, append(column("a/stream", sample.SenderCPU, 0, 1), column("b/stream", sample.SenderCPU, 1, 1)...))
	if len(r.Comparisons) != 0 {
		t.Errorf("comparisons %+v", r.Comparisons)
	}
	expectNote(t, r, "Sender CPU: there is no ratio of b/stream to a/stream, because ")
}

func TestPublishedFiguresAreBesideTheMeasuredFigures(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	r := report.Build(run, plan, samples)
	if len(r.Published) != len(plan.Published) {
		t.Fatalf("%d published", len(r.Published))
	}
	raw := row(t, r, "raw/stream")
	if p := r.Published[0]; p.Measured == nil || *p.Measured != *raw.Throughput || p.Published != plan.Published[0] {
		t.Errorf("throughput: %+v", p)
	}
	// The figure of a percentile is the median over the trials, with an interval.
	if p := r.Published[2]; p.Measured == nil || p.Measured.N != 6 || math.Abs(p.Measured.Median-31_000) > 1500 {
		t.Errorf("latency: %+v", p.Measured)
	}
	plan.Published = append(plan.Published, suite.Published{Scenario: "macvlan/stream", Metric: string(sample.Throughput)}, suite.Published{Scenario: "none"})
	for _, p := range report.Build(run, plan, samples).Published[3:] {
		if p.Measured != nil {
			t.Errorf("%s measured %+v", p.Scenario, p.Measured)
		}
	}
}

func TestValuesThatAreNotNumbersAreLeftOutWithANote(t *testing.T) {
	run, plan := twoSystems()
	samples := column("a/stream", sample.Throughput, 1, math.NaN(), math.Inf(1), 3)
	samples[0].Series = []sample.Point{{At: 0, Bits: math.NaN()}, {At: 1, Bits: 5}}
	r := report.Build(run, plan, samples)
	got := row(t, r, "a/stream")
	if got.Throughput.Median != 2 || got.Throughput.N != 2 {
		t.Errorf("throughput %+v", got.Throughput)
	}
	expectNote(t, r, "not finite numbers are left out (throughput_bps)")
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("encode the report as JSON: %v", err)
	}
	if len(samples[0].Series) != 2 || len(samples[1].Metrics) != 1 {
		t.Error("the caller's samples were changed")
	}
}

func TestSamplesOfTheReportAreInOrderAndWithoutRawOutputs(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	before := must.Get(json.Marshal(samples))(t)
	r := report.Build(run, plan, samples)
	total := 0
	for _, sc := range r.Scenarios {
		for i, s := range sc.Samples {
			total++
			if s.Outputs != nil {
				t.Errorf("%s block %d has its raw output", sc.ID, s.Block)
			}
			if i > 0 && sc.Samples[i-1].Block*100+sc.Samples[i-1].Attempt >= s.Block*100+s.Attempt {
				t.Errorf("%s: block %d attempt %d is out of order", sc.ID, s.Block, s.Attempt)
			}
		}
	}
	must.Equal(t, len(samples), total)
	if after, err := json.Marshal(samples); err != nil || string(after) != string(before) {
		t.Errorf("Build changed its argument, %v", err)
	}
}

func TestUnfinishedRunsSaySo(t *testing.T) {
	run, plan, samples := reporttest.Sized(1)
	run.Finished = time.Time{}
	for status, says := range map[sample.Status]string{sample.Running: "The run has not finished", sample.Stopped: "interrupted"} {
		run.Status = status
		r := report.Build(run, plan, samples)
		expectNote(t, r, says)
		if r.Run.Finished != nil {
			t.Error("has a finish")
		}
	}
}

func TestEmptyRunMakesAReport(t *testing.T) {
	r := report.Build(sample.Run{}, suite.Plan{}, nil)
	if len(r.Scenarios) != 0 || len(r.Findings) != 1 || !strings.Contains(r.Findings[0], "No trial yielded figures") {
		t.Errorf("the report of an empty plan is %+v, want no scenario, and the finding that there are no figures", r)
	}
}
