package report_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// unsettled is a machine whose host changes the CPU distance. At the far distance systems lose a third of their rate.
type unsettled struct {
	between, within float64 // probability of a change of the distance between two trials, and between two slices
	trial, slice    float64 // standard deviation of the logarithm of the rate: of a whole trial, and of a slice
	steal           float64 // share of the slices with steal
	far             bool
	*rand.Rand
}

// run returns a run of systems with these rates, whose figures a report adjusts. The first system is the baseline.
func (u *unsettled) run(blocks int, rates ...float64) (sample.Run, suite.Plan, []sample.Sample) {
	names := []string{"a", "b", "c", "d", "e"}[:len(rates)]
	run, plan := steps(names...)
	plan.Ladders, plan.Trials = nil, blocks
	run.Options.Adjusted, run.Options.CPUDistance = true, "any"
	for _, n := range names[1:] {
		plan.Comparisons = append(plan.Comparisons, suite.Comparison{Baseline: "a/stream", Subject: n + "/stream"})
	}
	var samples []sample.Sample
	for block := range blocks {
		for _, i := range u.Perm(len(names)) {
			s := sample.Sample{Scenario: names[i] + "/stream", Block: block, Metrics: sample.Metrics{sample.WindowSeconds: 1, sample.CPUDistance: 60}}
			u.move(u.between)
			own, bits := rates[i]*math.Exp(u.trial*u.NormFloat64()), 0.0
			for j := range 10 {
				u.move(u.within)
				p := sample.Point{At: float64(j+1) / 10, Seconds: 0.1, Bits: own * math.Exp(u.slice*u.NormFloat64()), SenderCPU: 60, ReceiverCPU: 70, CPUDistance: 60}
				if u.far {
					p.CPUDistance, p.Bits = 340, p.Bits*2/3
				}
				if u.Float64() < u.steal {
					p.Steal = float64(10 * (1 + u.IntN(3)))
					p.Bits *= 1 - p.Steal/100
				}
				bits += p.Bits / 10
				s.Series = append(s.Series, p)
			}
			if u.far {
				s.Metrics[sample.CPUDistance] = 340
			}
			s.Metrics.Merge(sample.Metrics{sample.Throughput: bits, sample.SenderCPU: 60, sample.SenderCPUPerByte: 60 * 8e7 / bits})
			samples = append(samples, s)
		}
	}
	return run, plan, samples
}

func (u *unsettled) move(probability float64) { u.far = u.far != (u.Float64() < probability) }

// The five systems are equal. All trials of a scenario share the error of its regression, so a test that takes adjusted
// trials as independent claims a difference in many more than 5 % of the runs.
func TestAdjustedFiguresOfOneSystemSeldomDiffer(t *testing.T) {
	const runs = 60
	u := &unsettled{between: 0.25, trial: 0.08, slice: 0.05, Rand: rand.New(rand.NewPCG(3, 4))}
	claims := 0
	for range runs {
		for _, c := range report.Build(u.run(18, 1e10, 1e10, 1e10, 1e10, 1e10)).Comparisons {
			if c.Verdict == model.Differs {
				claims++
				break
			}
		}
	}
	t.Logf("%d of %d runs claim a difference", claims, runs)
	if claims > runs/10 {
		t.Errorf("%d of %d runs claim a difference, want about 5 %%", claims, runs)
	}
}

// The distance changes within trials or between them. About 95 % of the intervals must contain the true ratio.
func TestIntervalsOfAdjustedRatiosHoldTheTrueRatio(t *testing.T) {
	const runs, truth = 60, 0.7
	for name, u := range map[string]*unsettled{
		"changes within trials":  {between: 0.5, within: 0.2, slice: 0.08, steal: 0.2},
		"changes between trials": {between: 0.25, trial: 0.08, slice: 0.05, steal: 0.2},
	} {
		u.Rand = rand.New(rand.NewPCG(7, 11))
		held := map[sample.Metric]int{}
		adjusted, plain := 0.0, 0.0 // sums of the intervals' widths
		for range runs {
			run, plan, samples := u.run(18, 10e9, truth*10e9)
			r := report.Build(run, plan, samples)
			for m, want := range map[sample.Metric]float64{sample.Throughput: truth, sample.SenderCPUPerByte: 1 / truth} {
				if c := r.Ratio("b/stream", m); c.Ratio.Low <= want && want <= c.Ratio.High {
					held[m]++
				}
			}
			run.Options.Adjusted = false
			a, b := r.Ratio("b/stream", sample.Throughput).Ratio, report.Build(run, plan, samples).Ratio("b/stream", sample.Throughput).Ratio
			adjusted, plain = adjusted+math.Log(a.High/a.Low), plain+math.Log(b.High/b.Low)
		}
		for m, n := range held {
			t.Logf("%s: %d of %d intervals of %s contain the true ratio", name, n, runs, m)
			if share := float64(n) / runs; share < 0.92 {
				t.Errorf("%s: the interval of %s contains the true ratio in %.1f %% of runs, want about 95 %%", name, m, 100*share)
			}
		}
		t.Logf("%s: adjusted intervals have %.2f of the width of unadjusted ones", name, adjusted/plain)
		if u.within > 0 && adjusted > 0.5*plain {
			t.Errorf("%s: adjusted intervals are %.3f wide, unadjusted ones %.3f: want at most half", name, adjusted/runs, plain/runs)
		}
	}
}

// With few trials at the distance shown, most figures are adjusted by the slope of one regression. About 95 % of the
// intervals of a scenario's median must contain the true rate, in the table and in a hypothesis.
func TestIntervalsOfAdjustedMediansHoldTheTrueRate(t *testing.T) {
	const runs, truth = 100, 1e10
	u := &unsettled{between: 0.25, trial: 0.05, slice: 0.02, Rand: rand.New(rand.NewPCG(3, 4))}
	table, hypothesis := 0, 0
	for range runs {
		u.far = false
		run, plan, samples := u.run(12, truth)
		run.Options.CPUDistance = "near"
		plan.Hypotheses = []suite.Hypothesis{{Claim: "the rate", Metric: string(sample.Throughput), Subjects: []string{"a/stream"}, Low: truth, High: truth}}
		r := report.Build(run, plan, samples)
		if iv := r.Scenarios[0].Throughput; iv.Low <= truth && truth <= iv.High {
			table++
		}
		if iv := r.Hypotheses[0].Observed[0].Figure; iv.Low <= truth && truth <= iv.High {
			hypothesis++
		}
	}
	t.Logf("of %d intervals, %d of the table and %d of the hypotheses contain the true rate", runs, table, hypothesis)
	if least := runs * 92 / 100; table < least || hypothesis < least {
		t.Errorf("of %d intervals, %d of the table and %d of the hypotheses contain the true rate, want about 95 %%", runs, table, hypothesis)
	}
}

// --precision and the report must use the same interval. It must contain the error of the regression.
func TestAdjustedRunsEndWhenThePrintedIntervalsArePrecise(t *testing.T) {
	u := &unsettled{between: 0.25, trial: 0.02, slice: 0.05, Rand: rand.New(rand.NewPCG(3, 4))}
	run, plan, samples := u.run(18, 10e9, 7e9)
	plan.Stop = suite.Stop{Precision: 0.1, MaxTrials: 40}
	c := report.Build(run, plan, samples).Ratio("b/stream", sample.Throughput)
	half := (c.Ratio.High - c.Ratio.Low) / 2 / c.Ratio.Median
	for wanted, reached := range map[float64]bool{0.99 * half: false, 1.01 * half: true} {
		plan.Stop.Precision = wanted
		lists := map[string][]model.Imprecise{"run": verdicts.Imprecision(run.Options, plan, samples), "report": report.Build(run, plan, samples).Precision.Widest}
		for of, list := range lists {
			if precise := !slices.ContainsFunc(list, func(i model.Imprecise) bool { return i.Metric == sample.Throughput }); precise != reached {
				t.Errorf("the report prints ±%.1f %%, and the plan requires ±%.1f %%; is the ratio precise for the %s? %v", 100*half, 100*wanted, of, precise)
			}
		}
	}
}
