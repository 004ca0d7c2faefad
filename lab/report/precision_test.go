package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// precise returns a plan with a precision of ±2 %. It compares b with a, and c with no
// scenario.
func precise() (sample.Run, suite.Plan) {
	run, plan := steps("a", "b", "c")
	plan.Ladders = nil
	plan.Trials, plan.Stop = 6, suite.Stop{Precision: 0.02, MaxTrials: 20, MaxTime: time.Hour}
	plan.Comparisons = []suite.Comparison{{Baseline: "a/stream", Subject: "b/stream"}}
	return run, plan
}

// busy returns n blocks with throughput and both sides' CPU, each ±wide.
func busy(id string, n int, wide float64, seed int) []sample.Sample {
	list := column(id, sample.Throughput, around(10e9, wide, n, seed)...)
	for i, v := range around(50, wide, n, seed+1) {
		list[i].Metrics[sample.SenderCPU], list[i].Metrics[sample.ReceiverCPU] = v, v
	}
	return list
}

func TestPrecisionIsReachedWhereEveryFigureIsKnownThatWell(t *testing.T) {
	run, plan := precise()
	r := report.Build(run, plan, slices.Concat(busy("a/stream", 8, 0.004, 0), busy("b/stream", 8, 0.004, 2), busy("c/stream", 8, 0.004, 4)))
	p := r.Precision
	if p == nil || !p.Reached || len(p.Widest) != 0 || p.Blocks != 8 || p.Wanted != 0.02 || p.Why != "In 8 blocks every requested figure is known within ±2 %." {
		t.Errorf("the precision is %+v, want reached in 8 blocks, at 2 %%", p)
	}
	plan.Stop.Precision = 0
	if r := report.Build(run, plan, nil); r.Precision != nil || verdicts.Imprecision(sample.Options{}, plan, busy("a/stream", 8, 0.5, 0)) != nil {
		t.Error("the report has a precision, but the plan asks for none")
	}
}

func TestImprecisionListsTheWidestFirstWithItsHalfWidth(t *testing.T) {
	_, plan := precise()
	samples := slices.Concat(busy("a/stream", 8, 0.004, 0), busy("b/stream", 8, 0.004, 2), busy("c/stream", 8, 0.1, 4))
	for i := range samples[8:16] {
		samples[8+i].Metrics[sample.ReceiverCPU] *= 1 + 0.06*float64(i%2)
	}
	got := verdicts.Imprecision(sample.Options{}, plan, samples)
	if len(got) != 4 || got[0].Subject != "c/stream" || got[0].Baseline != "" || got[3].Subject != "b/stream" || got[3].Baseline != "a/stream" || got[3].Metric != sample.ReceiverCPU {
		t.Fatalf("the imprecise figures are %+v, want 4: c/stream first, the receiver's CPU of b/stream to a/stream last", got)
	}
	for i, g := range got {
		if g.HalfWidth <= 0.02 || g.HalfWidth > 0.11 || i > 0 && g.HalfWidth > got[i-1].HalfWidth {
			t.Errorf("half-widths %+v", got)
		}
	}
	// c has no baseline: its interval is the interval of its median.
	own := report.Build(sample.Run{}, plan, samples).Scenarios[2].Throughput
	i := slices.IndexFunc(got, func(g model.Imprecise) bool { return g.Metric == sample.Throughput })
	must.Equal(t, (own.High-own.Low)/2/own.Median, got[i].HalfWidth)
}

func TestImprecisionOfTooFewTrialsComesFirst(t *testing.T) {
	_, plan := precise()
	got := verdicts.Imprecision(sample.Options{}, plan, slices.Concat(busy("a/stream", 8, 0.004, 0), busy("b/stream", 5, 0.004, 2), busy("c/stream", 8, 0.1, 4)))
	if len(got) != 6 || got[0].Subject != "b/stream" || got[0].HalfWidth != 0 || got[0].String() != "throughput of b/stream to that of a/stream has too few trials for an interval" || got[3].HalfWidth == 0 {
		t.Errorf("the imprecise figures are %+v, want 6, with b/stream, which has too few trials, first", got)
	}
}

func TestImprecisionLeavesOutWhatMoreTrialsCannotImprove(t *testing.T) {
	_, plan := precise()
	samples := slices.Concat(busy("a/stream", 8, 0.004, 0), busy("b/stream", 8, 0.004, 2), busy("c/stream", 8, 0.1, 4))
	for i := range samples {
		switch {
		case samples[i].Scenario == "b/stream":
			delete(samples[i].Metrics, sample.ReceiverCPU) // both endpoints on one node
		case samples[i].Scenario == "a/stream":
			samples[i].Metrics[sample.SenderCPU] = 0
		default: // never counts
			samples[i].Gates = []sample.Gate{{Name: sample.Steal, Value: 9, Limit: 2, Unit: "%"}}
		}
	}
	if got := verdicts.Imprecision(sample.Options{}, plan, samples); len(got) != 0 {
		t.Errorf("the imprecise figures are %+v, want none", got)
	}
	// After two blocks the scenario is not hopeless yet.
	if got := verdicts.Imprecision(sample.Options{}, plan, samples[16:18]); len(got) != 3 {
		t.Errorf("after two blocks: %+v", got)
	}
	r := report.Build(sample.Run{}, plan, samples)
	if r.Precision.Reached || !strings.Contains(r.Precision.Why, "but no trial of c/stream counts") {
		t.Errorf("the precision is %+v, want that it was not reached: no trial of c/stream counts", r.Precision)
	}
}

func TestAPrecisionThatIsNotReachedHasTheWideFiguresAndTheReasonOfTheEnd(t *testing.T) {
	run, plan := precise()
	samples := slices.Concat(busy("a/stream", 20, 0.004, 0), busy("b/stream", 20, 0.1, 2), busy("c/stream", 20, 0.004, 4))
	run.Finished = run.Started.Add(time.Minute)
	for want, change := range map[string]func(*sample.Run){
		"; the plan allows 20 trials.":        func(*sample.Run) {},
		"; the run's time, 1h0m0s, was over.": func(r *sample.Run) { r.Finished = r.Started.Add(2 * time.Hour) },
		"; the run was interrupted.":          func(r *sample.Run) { r.Status = sample.Stopped },
		"; the run has not finished.":         func(r *sample.Run) { r.Status = sample.Running },
	} {
		run := run
		change(&run)
		p := report.Build(run, plan, samples).Precision
		if p.Reached || p.Blocks != 20 || len(p.Widest) != 3 || !strings.HasSuffix(p.Why, want) || !strings.HasPrefix(p.Why, "The precision of ±2 % was not reached in 20 blocks: ") || !strings.Contains(p.Why, " of b/stream to that of a/stream is known within ±") || !strings.Contains(p.Why, ", and 2 other figures") {
			t.Errorf("want %q: %q", want, p.Why)
		}
	}
	if p := report.Build(run, plan, nil).Precision; p.Reached || p.Why != "Nothing was measured." {
		t.Errorf("the precision of a run without trials is %+v, want not reached: nothing was measured", p)
	}
}

func TestImprecisionOfRequestResponseIsOfTransactions(t *testing.T) {
	run, plan, samples := reporttest.Rigorous()
	plan.Stop.Precision = 1e-6
	for _, g := range verdicts.Imprecision(sample.Options{}, plan, samples) {
		if exchange := strings.HasSuffix(g.Subject, "/rr"); exchange && g.Metric == sample.Throughput || !exchange && g.Metric == sample.Transactions {
			t.Errorf("%+v is among the imprecise figures, want transactions of request/response and throughput of streams", g)
		}
		if g.Subject == "geneve/stream" || strings.HasPrefix(g.Subject, "bridge-colocated") && g.Metric == sample.ReceiverCPU {
			t.Errorf("%+v cannot be measured", g)
		}
	}
	if report.Build(run, plan, samples).Precision.Reached {
		t.Error("the precision is reached, but no figure is known")
	}
}
