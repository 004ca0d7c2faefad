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
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// metricOf compares two columns of one metric.
func metricOf(t *testing.T, m sample.Metric, a, b []float64) (*model.Report, *model.Comparison) {
	t.Helper()
	_, plan := twoSystems()
	r := report.Build(sample.Run{ID: "r"}, plan, append(column("a/stream", m, a...), column("b/stream", m, b...)...))
	return r, r.Ratio("b/stream", m)
}

func TestVerdictsFollowTheTestAndTheCorrection(t *testing.T) {
	for _, c := range []struct {
		name   string
		metric sample.Metric
		a, b   []float64
		want   model.Verdict
	}{
		{"a clear difference", sample.Throughput, spread(10, 10, 8), spread(9, 9.5, 8), model.Differs},
		{"noise about the same", sample.Throughput, around(10, 0.03, 8, 0), around(10, 0.03, 8, 1), model.Alike},
		{"a clear difference in five blocks", sample.Throughput, spread(10, 10, 5), spread(9, 9.5, 5), model.TooFew},
		{"one block", sample.Throughput, []float64{10}, []float64{9}, model.TooFew},
		{"no variance, no difference", sample.Throughput, spread(10, 10, 8), spread(10, 10, 8), model.Alike},
		{"no variance, a difference", sample.Throughput, spread(10, 10, 8), spread(9, 9, 8), model.Differs},
		{"a clear difference in a metric that is no headline", sample.LatencyP99, spread(10, 10, 12), spread(9, 9.5, 12), model.Differs},
		{"no difference of what is no headline", sample.SenderCPU, around(10, 0.03, 8, 0), around(10, 0.03, 8, 1), model.Alike},
	} {
		_, got := metricOf(t, c.metric, c.a, c.b)
		if got == nil {
			t.Errorf("%s: no comparison", c.name)
			continue
		}
		if got.Verdict != c.want || got.Distinct != (c.want == model.Differs) || got.Verdict.Equal() != (c.want == model.Alike) {
			t.Errorf("%s: %s, distinct %v, alike %v, want %s", c.name, got.Verdict, got.Distinct, got.Verdict.Equal(), c.want)
		}
		if (got.P == nil) != (c.want == model.TooFew) || (got.Effect == nil) != (got.P == nil) {
			t.Errorf("%s: p %v, effect %v", c.name, got.P, got.Effect)
		}
		if (got.Adjusted != nil) != (got.P != nil) {
			t.Errorf("%s: adjusted %v", c.name, got.Adjusted)
		}
	}
}

func TestExactPOfSixBlocksIsTwoOfSixtyFour(t *testing.T) {
	_, c := metricOf(t, sample.Throughput, spread(10, 10, 6), spread(9, 9.5, 6))
	if c.P == nil || math.Abs(*c.P-2.0/64) > 1e-12 || *c.Adjusted != *c.P || *c.Effect != -1 || c.Verdict != model.Differs {
		t.Errorf("the comparison is %+v, want that it differs with p = 2/64", c)
	}
}

func TestHeadlinesAreThroughputAndCPUPerByte(t *testing.T) {
	for m, exchange := range map[sample.Metric]bool{
		sample.Throughput: false, sample.SenderCPUPerByte: false, sample.ReceiverCPUPerByte: false, sample.Transactions: true,
	} {
		if !verdicts.Headline(m, exchange) || verdicts.Headline(m, !exchange) {
			t.Errorf("%s, exchange %v", m, exchange)
		}
	}
	for _, m := range []sample.Metric{sample.LatencyP50, sample.LatencyP99, sample.SenderCPU, sample.ReceiverCPUPerPacket, sample.Retransmits} {
		if verdicts.Headline(m, false) || verdicts.Headline(m, true) {
			t.Errorf("%s is a headline", m)
		}
	}
}

func TestEveryComparisonIsCorrectedAndNoneIsOfOneNodeWithTwo(t *testing.T) {
	for _, c := range reporttest.Quick().Comparisons {
		if (c.Adjusted != nil) != (c.P != nil) || c.Adjusted != nil && *c.Adjusted < *c.P {
			t.Errorf("%s of %s: p %v becomes %v", c.Metric, c.Subject, c.P, c.Adjusted)
		}
		if strings.HasPrefix(c.Subject, "bridge-colocated") && (c.Metric.Side() != "" || c.Metric == sample.Capacity) {
			t.Errorf("the CPU of a node with both endpoints is compared with a sender's CPU: %+v", c)
		}
	}
}

// Each run has 8 comparisons of equal systems in all metrics. Figures of one block
// depend on each other, as CPU per byte depends on throughput.
func TestFewRunsOfEqualsClaimADifferenceInAnyMetric(t *testing.T) {
	must.Long(t)
	rng := rand.New(rand.NewPCG(9, 9))
	const runs = 200
	alarmed := 0
	for range runs {
		var plan suite.Plan
		var samples []sample.Sample
		for i := range 9 {
			id := string(rune('a'+i)) + "/stream"
			plan.Scenarios = append(plan.Scenarios, suite.Scenario{ID: id, Workload: suite.Workload{Name: "stream", Kind: suite.TCPStream}})
			if i > 0 {
				plan.Comparisons = append(plan.Comparisons, suite.Comparison{Baseline: "a/stream", Subject: id})
			}
			for block := range 10 {
				noise := func() float64 { return math.Exp(0.05 * rng.NormFloat64()) }
				rate, ms := noise(), sample.Metrics{}
				ms.Set(sample.Throughput, 1e10*rate)
				for _, m := range []sample.Metric{sample.SenderCPUPerByte, sample.ReceiverCPUPerByte} {
					ms.Set(m, noise()/rate)
				}
				ms.Set(sample.Capacity, 8e9/max(ms[sample.SenderCPUPerByte], ms[sample.ReceiverCPUPerByte]))
				ms.Set(sample.SenderCPU, 80*ms[sample.SenderCPUPerByte]*rate)
				ms.Set(sample.ReceiverCPU, 80*ms[sample.ReceiverCPUPerByte]*rate)
				ms.Set(sample.SenderCPUPerPacket, 1500*ms[sample.SenderCPUPerByte]*noise())
				ms.Set(sample.ReceiverCPUPerPacket, 1500*ms[sample.ReceiverCPUPerByte]*noise())
				samples = append(samples, sample.Sample{Scenario: id, Block: block, Metrics: ms})
			}
		}
		r := report.Build(sample.Run{ID: "r"}, plan, samples)
		if len(r.Comparisons) != 8*8 {
			t.Fatalf("%d comparisons, want 64", len(r.Comparisons))
		}
		if slices.ContainsFunc(r.Comparisons, func(c model.Comparison) bool { return c.Verdict == model.Differs }) {
			alarmed++
		}
	}
	t.Logf("%d of %d runs claim a difference", alarmed, runs)
	if float64(alarmed) > 0.09*runs {
		t.Errorf("%d of %d runs of equals claim a difference, want 9 %% at most", alarmed, runs)
	}
}

// VXLAN has half the bridge's throughput in each of 9 blocks. Among 16 tests this
// difference must be certain.
func TestAnOverwhelmingDifferenceIsCertainInALargeReport(t *testing.T) {
	for _, n := range []int{6, 9, 11} {
		run, plan := sample.Run{ID: "r"}, suite.Plan{Suite: "s"}
		var samples []sample.Sample
		for i := range 16 {
			id := string(rune('a'+i)) + "/stream"
			bits := 10e9
			if i == 1 {
				bits = 4.9e9
			}
			plan.Scenarios = append(plan.Scenarios, suite.Scenario{ID: id, Workload: suite.Workload{Name: "stream", Kind: suite.TCPStream}})
			samples = append(samples, column(id, sample.Throughput, around(bits, 0.03, n, i)...)...)
			if i > 0 {
				plan.Comparisons = append(plan.Comparisons, suite.Comparison{Baseline: "a/stream", Subject: id})
			}
		}
		c := report.Build(run, plan, samples).Ratio("b/stream", sample.Throughput)
		if c.Verdict != model.Differs || *c.Adjusted != math.Ldexp(1, 1-n) {
			t.Errorf("%d blocks: %s, corrected p %v", n, c.Verdict, *c.Adjusted)
		}
	}
}

func TestASentenceOfNoDifferenceHasTheDetectableDifference(t *testing.T) {
	r, c := metricOf(t, sample.Throughput, around(10e9, 0.03, 10, 0), around(10e9, 0.03, 10, 1))
	if c.Verdict != model.Alike || c.Detectable == nil || *c.Detectable <= 0 || *c.Detectable > 0.2 {
		t.Fatalf("the comparison is %+v, want alike, with a detectable difference of at most 20 %%", c)
	}
	says := "a difference of " + fmt.Sprintf("%.2g %%", 100**c.Detectable) + " or more would have been detected"
	if rows := fmt.Sprint(tables.Of(r)[0].Table().Rows); !strings.Contains(rows, verdicts.Marks[model.Alike]) {
		t.Errorf("the ratio has no mark in the table: %s", rows)
	}
	for name, text := range map[string]string{"finding": r.Findings[0], "legend": strings.Join(tables.Of(r)[0].Legend(), " ")} {
		if !strings.Contains(text, says) {
			t.Errorf("the %s does not say %q: %s", name, says, text)
		}
	}
}

func TestScenariosWithoutACommonBlockAreNotCompared(t *testing.T) {
	run, plan := twoSystems()
	late := column("b/stream", sample.Throughput, 1, 2, 3)
	for i := range late {
		late[i].Block += 10
	}
	r := report.Build(run, plan, append(column("a/stream", sample.Throughput, 1, 2, 3), late...))
	if len(r.Comparisons) != 0 {
		t.Errorf("the comparisons are %+v, want none", r.Comparisons)
	}
	expectNote(t, r, "b/stream and a/stream have figures, but no block has figures of both, so they cannot be compared.")
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0], "The bridge cannot be compared with raw: b/stream and a/stream have figures, but no block has figures of both.") {
		t.Errorf("the findings are %q, want one that no block has figures of both", r.Findings)
	}
}

func TestAComparisonWithAScenarioOfInvalidTrialsHasTheReason(t *testing.T) {
	run, plan := twoSystems()
	bad := column("b/stream", sample.Throughput, spread(1, 2, 8)...)
	for i := range bad {
		bad[i].Gates = []sample.Gate{{Name: sample.ForeignCPU, Value: 10 + 3*float64(i), Limit: 3, Unit: "%", Message: "foreign"}}
	}
	r := report.Build(run, plan, append(column("a/stream", sample.Throughput, spread(1, 2, 8)...), bad...))
	want := "The bridge cannot be compared with raw: b/stream could not be measured in 8 attempts (foreign-cpu 8×, worst 31.0 %)."
	if len(r.Findings) != 1 || r.Findings[0] != want {
		t.Errorf("the findings are %q, want only %q", r.Findings, want)
	}
	if len(r.Comparisons) != 0 || r.Validity.Valid != 8 || r.Validity.Gated != 8 {
		t.Errorf("the comparisons are %+v and the counts %+v, want no comparison, 8 valid and 8 gated trials", r.Comparisons, r.Validity)
	}
}

func TestComparisonNamesTheScenarioThatThePlanLacks(t *testing.T) {
	run, plan := twoSystems()
	plan.Comparisons = append(plan.Comparisons, suite.Comparison{Baseline: "a/stream", Subject: "gone/stream"})
	expectNote(t, report.Build(run, plan, nil), "The comparison of gone/stream with a/stream names a scenario that the plan does not have.")
}
