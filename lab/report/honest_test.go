package report_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"windtunnel/lab/report"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/report/text"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// chance makes a random run of a few scenarios. Trials may be missing, failed, rejected
// or profiled. Values may be zero or not finite.
func chance(rng *rand.Rand) (sample.Run, suite.Plan, []sample.Sample) {
	names := []string{"raw", "bridge", "vxlan", "geneve"}[:1+rng.IntN(4)]
	run, plan := steps(names...)
	plan.Trials = 1 + rng.IntN(14)
	for i, from := range plan.Scenarios {
		from.ID, from.Workload = names[i]+"/rr", suite.Workload{Name: "rr", Kind: suite.TCPRR}
		plan.Scenarios = append(plan.Scenarios, from)
	}
	for i := range plan.Scenarios {
		if rng.IntN(6) == 0 {
			plan.Scenarios[i].Placement = suite.Colocated
		}
		plan.Comparisons = append(plan.Comparisons, suite.Comparison{Baseline: plan.Scenarios[rng.IntN(len(plan.Scenarios))].ID, Subject: plan.Scenarios[i].ID})
		plan.Hypotheses = append(plan.Hypotheses, suite.Hypothesis{Claim: "c", Metric: string(sample.Known()[rng.IntN(30)].Metric), Baseline: plan.Scenarios[0].ID,
			Subjects: []string{plan.Scenarios[i].ID, "gone"}[:1+rng.IntN(2)], Low: rng.Float64(), High: 1 + rng.Float64(), Printed: "p"})
	}
	if rng.IntN(2) == 0 {
		plan.Stop = suite.Stop{Precision: 0.05 * rng.Float64(), MaxTrials: rng.IntN(20)}
	}
	if rng.IntN(3) == 0 {
		run.Skipped = map[string]string{plan.Scenarios[rng.IntN(len(plan.Scenarios))].ID: "because"}
	}
	var samples []sample.Sample
	for i := range plan.Scenarios {
		if run.Skipped[plan.Scenarios[i].ID] == "" {
			samples = append(samples, chances(rng, &plan.Scenarios[i], plan.Trials)...)
		}
	}
	rng.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	return run, plan, samples
}

func chances(rng *rand.Rand, sc *suite.Scenario, blocks int) []sample.Sample {
	var list []sample.Sample
	centre, wide, bad := math.Exp([]float64{4, 0.05}[rng.IntN(2)]*rng.NormFloat64()), 0.1*rng.Float64(), rng.Float64()*rng.Float64()
	for block := range blocks {
		for attempt := range 1 + rng.IntN(2) {
			s := sample.Sample{Scenario: sc.ID, Block: block, Attempt: attempt, Metrics: sample.Metrics{}}
			for _, m := range verdicts.Compared {
				switch u := rng.Float64(); {
				case u < bad/4:
				case u < bad/3:
					s.Metrics[m] = []float64{math.NaN(), math.Inf(1), 0, -1}[rng.IntN(4)]
				default:
					s.Metrics[m] = centre * (1 + wide*rng.NormFloat64())
				}
			}
			switch u := rng.Float64(); {
			case u < bad/3:
				s.Failure, s.Metrics = &sample.Failure{Kind: sample.ToolHung, Message: "hung"}, nil
			case u < bad:
				s.Gates = []sample.Gate{{Name: sample.ForeignCPU, Value: []float64{30 * u, math.NaN()}[rng.IntN(2)], Limit: 3, Unit: "%", Message: "foreign"}}
			}
			s.Profiled = rng.IntN(10) == 0
			list = append(list, s)
		}
	}
	return list
}

func TestNoRunPanicsOrContradictsItself(t *testing.T) {
	writers := []func(io.Writer, *model.Report) error{asMarkdown, export.WriteJSON, export.WriteCSV, export.WriteBenchfmt, table(text.Options{Width: 80})}
	seen := make(map[model.Verdict]int)
	for seed := range uint64(300) {
		r := report.Build(chance(rand.New(rand.NewPCG(seed, 4))))
		for _, write := range writers {
			if err := write(io.Discard, r); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
		for i := range r.Comparisons {
			seen[r.Comparisons[i].Verdict]++
		}
		for _, wrong := range contradictions(r) {
			t.Errorf("seed %d: %s", seed, wrong)
		}
	}
	for _, v := range []model.Verdict{model.Differs, model.Suggested, model.Alike, model.TooFew} {
		if seen[v] < 20 {
			t.Errorf("only %d comparisons have the verdict %s: the random runs are not varied enough", seen[v], v)
		}
	}
}

// contradictions lists the statements of a report that contradict each other.
func contradictions(r *model.Report) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		switch {
		case c.Verdict.Equal() && c.Distinct, c.Distinct != (c.Verdict == model.Differs), c.Verdict == "":
			add("%s of %s is %s, alike %v and distinct %v", c.Metric, c.Subject, c.Verdict, c.Verdict.Equal(), c.Distinct)
		case c.Verdict == model.TooFew && c.Ratio.N >= 6, c.Verdict != model.TooFew && c.Ratio.N < 6:
			add("%s of %s with %d blocks is %s", c.Metric, c.Subject, c.Ratio.N, c.Verdict)
		case c.Verdict != model.TooFew && c.Verdict.Equal() == (c.Ratio.Low > 1 || c.Ratio.High < 1), c.Verdict != model.TooFew && c.Verdict.Equal() != (*c.P > 0.05), c.Verdict == model.Differs && *c.Adjusted > 0.05:
			add("%s of %s with p %v is %s", c.Metric, c.Subject, *c.P, c.Verdict)
		case c.Ratio.Low > c.Ratio.Median || c.Ratio.High < c.Ratio.Median:
			add("%s of %s: %+v", c.Metric, c.Subject, c.Ratio)
		case c.Ratio.N < 6 && c.Ratio.Level >= 0.95:
			add("%s of %s: an interval of %d blocks has level %v", c.Metric, c.Subject, c.Ratio.N, c.Ratio.Level)
		}
	}
	for _, l := range r.Ladders {
		list = append(list, denied(l)...)
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if s.Trials+s.Failed > 0 && s.Trials == 0 && rejected.Unmeasured(s) == "" || s.Trials == 0 && s.Throughput != nil || s.Trials > r.Validity.Valid {
			add("%s has %d trials and %d failed, throughput %v, unmeasured %q", s.ID, s.Trials, s.Failed, s.Throughput, rejected.Unmeasured(s))
		}
	}
	if v := r.Validity; v.Attempts != v.Valid+v.Failed+v.Gated {
		add("%+v", v)
	}
	if p := r.Precision; p != nil && p.Reached && len(p.Widest) > 0 {
		add("%+v", p)
	}
	for _, h := range r.Hypotheses {
		undecided := slices.ContainsFunc(h.Observed, func(o model.Observed) bool { return o.Judgement != model.Holds })
		if h.Judgement == model.Holds && undecided || h.Why == "" {
			add("%+v", h)
		}
	}
	for _, s := range report.Explain(r).Sections {
		for _, p := range s.Sentences {
			if strings.Contains(p, "NaN") || strings.Contains(p, "Inf") || strings.Contains(p, "%!") || p == "" {
				add("explained as %q", p)
			}
		}
	}
	return list
}

// denied lists the costs of a ladder with a sentence that contradicts the verdict.
func denied(l model.Ladder) []string {
	var list []string
	for i := range l.Steps {
		g := &l.Steps[i]
		for _, c := range g.Costs {
			if c.Ratio == nil {
				continue
			}
			part := &model.Ladder{Steps: []model.Rung{{Scenario: g.From, Name: "below"}, {Scenario: g.Scenario, Name: "it", From: g.From, Costs: []model.Cost{c}}}}
			said := sentences.Ladder(&model.Report{}, part)[0]
			if none := strings.Contains(said, "no difference shows"); none != (c.Verdict == model.Alike) {
				list = append(list, fmt.Sprintf("%s of %s is %s, and said as %q", c.Metric, g.Scenario, c.Verdict, said))
			}
		}
	}
	return list
}
