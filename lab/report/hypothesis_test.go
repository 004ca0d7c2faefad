package report_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func planless() suite.Plan { return suite.Plan{} }

// claim builds a report with the hypothesis that the ratios of b and c to a are between
// low and high.
func claim(t *testing.T, low, high float64, a, b, c []float64) (*model.Report, *model.Hypothesis) {
	t.Helper()
	run, plan := steps("a", "b", "c")
	plan.Ladders = nil
	plan.Hypotheses = []suite.Hypothesis{{Claim: "they are so", Metric: string(sample.Throughput), Baseline: "a/stream", Subjects: []string{"b/stream"}, Low: low, High: high, Printed: "the claim"}}
	if c != nil {
		plan.Hypotheses[0].Subjects = append(plan.Hypotheses[0].Subjects, "c/stream")
	}
	r := report.Build(run, plan, slices.Concat(column("a/stream", sample.Throughput, a...), column("b/stream", sample.Throughput, b...), column("c/stream", sample.Throughput, c...)))
	if len(r.Hypotheses) != 1 {
		t.Fatalf("%d hypotheses", len(r.Hypotheses))
	}
	return r, &r.Hypotheses[0]
}

func TestHypothesisIsJudgedByTheInterval(t *testing.T) {
	one := spread(10, 10, 10)
	for _, c := range []struct {
		low, high float64
		b         []float64
		want      model.Judgement
		why       string
	}{
		{1.8, 2.2, spread(19, 21, 10), model.Holds, "Throughput of b/stream is 2.00× [1.94, 2.06] that of a/stream (95 % interval, n = 10), within the claim."},
		{0.8, 1.2, spread(19, 21, 10), model.Refuted, "outside the claim."},
		{2.8, 3.2, spread(19, 21, 10), model.Refuted, "outside the claim."},
		{2.0, 2.5, spread(19, 21, 10), model.Undecided, "partly within the claim."},
		{1.99, 2.01, spread(19, 21, 10), model.Undecided, "partly within the claim."},
		{2, 2, spread(20, 20, 10), model.Holds, "2.000× [2.000, 2.000]"},
	} {
		_, h := claim(t, c.low, c.high, one, c.b, nil)
		if h.Judgement != c.want || len(h.Observed) != 1 || h.Observed[0].Judgement != c.want || !strings.HasSuffix(h.Why, c.why) && !strings.Contains(h.Why, c.why) {
			t.Errorf("[%v, %v]: %s (%s), want %s (%s)", c.low, c.high, h.Judgement, h.Why, c.want, c.why)
		}
	}
}

func TestHypothesisBoundsADifferenceAValueOrARatioOfTwoMetrics(t *testing.T) {
	run, plan := steps("a", "b", "c")
	plan.Ladders = nil
	a, b := spread(1e9, 1.1e9, 10), spread(0.84e9, 0.96e9, 10)
	samples := slices.Concat(column("a/stream", sample.Throughput, a...), column("b/stream", sample.Throughput, b...))
	for i := range samples {
		samples[i].Metrics[sample.SenderCPU], samples[i].Metrics[sample.ReceiverCPU] = 20, 50+float64(i%10)/10
	}
	for _, c := range []struct {
		of   suite.Hypothesis
		want model.Judgement
		why  string
	}{
		{suite.Hypothesis{Low: 0.8e9, High: 1e9}, model.Holds, "Throughput of b/stream is 900 Mbit/s [85"},
		{suite.Hypothesis{Low: 1.2e9, High: math.MaxFloat64}, model.Refuted, "outside the claim."},
		{suite.Hypothesis{Low: 0.9e9, High: math.MaxFloat64}, model.Undecided, "partly within the claim."},
		{suite.Hypothesis{Baseline: "a/stream", Difference: true, Low: -0.2e9, High: -0.1e9}, model.Holds, "Throughput of b/stream less that of a/stream is −150 Mbit/s [−"},
		{suite.Hypothesis{Baseline: "a/stream", Difference: true, Low: 0, High: math.MaxFloat64}, model.Refuted, "outside the claim."},
		{suite.Hypothesis{Metric: string(sample.ReceiverCPU), Over: string(sample.SenderCPU), Low: 2, High: 4}, model.Holds, "Receiver CPU of b/stream is 2.52× [2.5"},
		{suite.Hypothesis{Metric: string(sample.ReceiverCPU), Over: string(sample.SenderCPU), Low: 0, High: 2}, model.Refuted, "its sender CPU (95 % interval, n = 10), outside the claim."},
		{suite.Hypothesis{Metric: string(sample.ReceiverCPU), Over: string(sample.Segments), Low: 0, High: 2}, model.Undecided, "Segments was not measured in b/stream."},
	} {
		c.of.Subjects, c.of.Printed = []string{"b/stream"}, "the claim"
		if c.of.Metric == "" {
			c.of.Metric = string(sample.Throughput)
		}
		plan.Hypotheses = []suite.Hypothesis{c.of}
		if h := report.Build(run, plan, samples).Hypotheses[0]; h.Judgement != c.want || !strings.Contains(h.Why, c.why) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.of.Figure(), h.Judgement, h.Why, c.want, c.why)
		}
	}
}

func TestHypothesisOfSeveralSubjectsNeedsThemAll(t *testing.T) {
	one, within, outside, astride := spread(10, 10, 12), spread(10, 10.1, 12), spread(15, 15.1, 12), spread(10, 11.5, 12)
	for _, c := range []struct {
		b, c []float64
		want model.Judgement
	}{{within, within, model.Holds}, {within, outside, model.Refuted}, {outside, astride, model.Refuted}, {astride, outside, model.Refuted}, {within, astride, model.Undecided}, {astride, within, model.Undecided}} {
		_, h := claim(t, 0.9, 1.1, one, c.b, c.c)
		if h.Judgement != c.want || len(h.Observed) != 2 {
			t.Errorf("%s, want %s: %s", h.Judgement, c.want, h.Why)
		}
		for _, o := range h.Observed {
			if l := o.Figure.Level; l < 0.975 || l > 0.985 {
				t.Errorf("the interval of one of two subjects has level %v, want 0.975 or little more", l)
			}
		}
	}
}

func TestHypothesisOfTooFewTrialsIsUndecided(t *testing.T) {
	for n := 1; n < 6; n++ {
		_, h := claim(t, 0.9, 1.1, spread2(10, n), spread2(20, n), nil)
		if h.Judgement != model.Undecided || !strings.Contains(h.Why, "too few to judge by: 6 are needed") {
			t.Errorf("n = %d: %s, %s", n, h.Judgement, h.Why)
		}
	}
	// With two subjects the intervals must be wider, which takes a seventh.
	_, h := claim(t, 0.9, 1.1, spread2(10, 6), spread2(10, 6), spread2(10, 6))
	if h.Judgement != model.Undecided || !strings.Contains(h.Why, "7 are needed") {
		t.Errorf("the hypothesis is %s because %s, want undecided: 7 trials are needed", h.Judgement, h.Why)
	}
}

func spread2(v float64, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = v
	}
	return list
}

func TestAHypothesisThatCannotBeJudgedHasTheReason(t *testing.T) {
	run, plan := steps("a", "b", "c")
	plan.Ladders = nil
	run.Skipped = map[string]string{"c/stream": "no module"}
	ask := func(metric, baseline string, subjects ...string) {
		plan.Hypotheses = append(plan.Hypotheses, suite.Hypothesis{Metric: metric, Baseline: baseline, Subjects: subjects, Low: 0.9, High: 1.1, Printed: "1 ± 10 %"})
	}
	throughput := string(sample.Throughput)
	ask("loss_ratio", "a/stream", "b/stream")
	ask(throughput, "a/stream", "c/stream")
	ask(throughput, "gone/stream", "b/stream")
	ask(throughput, "a/stream")
	ask(string(sample.SenderCPU), "a/stream", "b/stream")
	ask(string(sample.Retransmits), "a/stream", "b/stream")
	samples := append(column("a/stream", sample.Throughput, spread2(10, 8)...), column("b/stream", sample.Throughput, spread2(10, 8)...)...)
	for i := range samples {
		samples[i].Metrics[sample.SenderCPU] = math.NaN()
		if i%2 == 0 == (i < 8) {
			samples[i].Metrics[sample.Retransmits] = 1 // of a in even blocks, of b in odd ones
		}
	}
	for i := range samples[:8] {
		samples[i].Metrics["zero"] = 0
	}
	ask("zero", "a/stream", "b/stream")
	for i := range samples[8:] {
		samples[8+i].Metrics["zero"] = 1
	}
	r := report.Build(run, plan, samples)
	for i, want := range []string{
		"Loss was not measured in b/stream.",
		"There are no figures: c/stream was skipped: no module.",
		"There are no figures: gone/stream is not in the plan.",
		"It names no subject.",
		"Sender CPU was not measured in b/stream.",
		"No block has retransmits of both b/stream and a/stream.",
		"Zero: there is no ratio of b/stream and a/stream, because ",
	} {
		judgement := model.Undecided
		if strings.Contains(want, "was skipped") {
			judgement = model.NotHere
		}
		if h := r.Hypotheses[i]; h.Judgement != judgement || !strings.HasPrefix(h.Why, want) {
			t.Errorf("%s: %q, want %s: %q", h.Judgement, h.Why, judgement, want)
		}
	}
	for _, text := range []string{tabled(t, r, text.Options{Width: 100}), written(t, asMarkdown, r), written(t, export.WriteJSON, r)} {
		if !strings.Contains(text, "undecided") {
			t.Errorf("does not show the judgement: %s", text)
		}
	}
}

func TestHypothesisComparesSpreads(t *testing.T) {
	run, plan := steps("a", "b", "c")
	plan.Ladders = nil
	unpinned := &plan.Scenarios[0]
	unpinned.Fabric.Unpinned = true
	one, wide := []float64{9.9, 10.1, 10, 9.8, 10.2, 9.95, 10.05, 10.15, 9.85, 10, 10.1}, []float64{8, 12.1, 9, 11, 7.5, 12.5, 10, 9.5, 11.5, 8.5, 12}
	again := slices.Concat(one[4:], one[:4])
	for _, c := range []struct {
		a, b []float64
		want model.Judgement
		why  string
	}{
		{wide, one, model.Holds, "Spread (coefficient of variation) of throughput over the trials of b/stream is 0.07× [0.04, 0.12]"},
		{wide, one, model.Holds, "that of a/stream: 1.3 % beside 17 % (95 % interval, n = 11), within <= 1."},
		{one, wide, model.Refuted, "outside <= 1."},
		{one, again, model.Undecided, "partly within <= 1."},
		{wide[:5], one[:5], model.Undecided, "in 5 trials, too few to judge by: 6 are needed."},
		{wide[:2], one[:2], model.Undecided, "Throughput of b/stream and a/stream has no ratio in 2 trials."},
		{spread2(10, 11), one, model.Undecided, "the ratio of spreads cannot be computed"},
	} {
		plan.Hypotheses = []suite.Hypothesis{{Spread: true, Metric: string(sample.Throughput), Baseline: "a/stream", Subjects: []string{"b/stream"}, High: 1, Printed: "<= 1"}}
		r := report.Build(run, plan, slices.Concat(column("a/stream", sample.Throughput, c.a...), column("b/stream", sample.Throughput, c.b...)))
		if h := r.Hypotheses[0]; h.Judgement != c.want || !strings.Contains(h.Why, c.why) {
			t.Errorf("the judgement is %s (%s), want %s (%s)", h.Judgement, h.Why, c.want, c.why)
		}
		expectNote(t, r, "Programs of each node ran on the CPUs of all nodes (pinned: false), so CPU figures of a side, limits and profiles are absent: a/stream.")
	}
	must.Equal(t, "spread of throughput_bps of b/stream / a/stream", plan.Hypotheses[0].Figure())

	plan.Hypotheses[0] = suite.Hypothesis{Metric: string(sample.SenderCPUPerByte), Subjects: []string{"a/stream"}, High: 1, Printed: "<= 1"}
	h := report.Build(run, plan, column("a/stream", sample.Throughput, one...)).Hypotheses[0]
	if want := "Sender CPU per byte was not measured in a/stream: the nodes are not pinned."; h.Judgement != model.Undecided || h.Why != want {
		t.Errorf("the judgement is %s, because %q; want the reason %q", h.Judgement, h.Why, want)
	}
}
