package compare

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

var throughput = Options{Metrics: []sample.Metric{sample.Throughput}}

func TestRegressionOfFivePercentIsFoundWhereItIsAndNowhereElse(t *testing.T) {
	a := made{id: "a", blocks: 12, seed: 1, noise: 0.01}.run()
	b := made{id: "b", blocks: 12, seed: 2, noise: 0.01, scale: map[string]float64{"bridge/stream": 0.95}}.run()
	c, err := Runs(a, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Values) != 4*5-4 || len(c.Ratios) != 2*5-2 {
		t.Errorf("%d rows and %d of ratios", len(c.Values), len(c.Ratios))
	}
	for i := range c.Values {
		r := &c.Values[i]
		want := Alike
		if r.Scenario == "bridge/stream" && r.Metric == sample.Throughput {
			want = Worse
		}
		if r.Verdict != want {
			t.Errorf("%s, want %s", r.line(), want)
		}
		if r.Verdict == Alike && (r.Smallest == nil || *r.Smallest <= 0 || *r.Smallest > 0.05) {
			t.Errorf("%s: smallest detectable %v", r.line(), r.Smallest)
		}
		if *r.Adjusted < *r.P {
			t.Errorf("%s: corrected %v below %v", r.line(), *r.Adjusted, *r.P)
		}
	}
	r := find(c.Values, "bridge/stream", sample.Throughput)
	if math.Abs(r.Ratio.Median-0.95) > 0.015 || !(r.Ratio.Low < 0.95 && 0.95 < r.Ratio.High) || *r.Effect > -0.9 {
		t.Errorf("%s, effect %v", r.line(), *r.Effect)
	}
	if q := find(c.Ratios, "bridge/stream", sample.Throughput); q.Baseline != "raw/stream" || q.Verdict != Worse || math.Abs(q.Ratio.Median-0.95) > 0.02 {
		t.Errorf("as a ratio to raw: %s", q.line())
	}
	if !strings.Contains(c.Notes[0], "drifted") {
		t.Errorf("notes %q", c.Notes)
	}
}

func TestDirectionFollowsTheMetric(t *testing.T) {
	a := made{id: "a", blocks: 12, seed: 1, noise: 0.005}.run()
	b := made{id: "b", blocks: 12, seed: 2, noise: 0.005, scale: map[string]float64{"bridge/rr": 1.1}}.run()
	c, err := Runs(a, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []sample.Metric{sample.Transactions, sample.LatencyP50, sample.LatencyP99} {
		if r := find(c.Values, "bridge/rr", m); r.Verdict != Better {
			t.Errorf("more transactions and less latency: %s", r.line())
		}
	}
	c, err = Runs(b, a, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := find(c.Values, "bridge/rr", sample.LatencyP50); r.Verdict != Worse || math.Abs(r.Ratio.Median-1.1) > 0.01 {
		t.Errorf("the other way round: %s", r.line())
	}
}

func TestSlowerMachineShowsInTheFiguresAndNotInTheRatios(t *testing.T) {
	a := made{id: "a", blocks: 12, seed: 1, noise: 0.005}.run()
	b := made{id: "b", blocks: 12, seed: 2, noise: 0.005, drift: 0.9}.run()
	c, err := Runs(a, b, throughput)
	if err != nil {
		t.Fatal(err)
	}
	if r := find(c.Values, "bridge/stream", sample.Throughput); r.Verdict != Worse || math.Abs(r.Ratio.Median-0.9) > 0.01 {
		t.Errorf("%s", r.line())
	}
	if r := find(c.Ratios, "bridge/stream", sample.Throughput); r.Verdict != Alike || math.Abs(r.Ratio.Median-1) > 0.01 {
		t.Errorf("%s", r.line())
	}
}

func TestLastAttemptThatCountsIsTakenOfEachBlock(t *testing.T) {
	b := made{id: "b", blocks: 3, seed: 2}.run()
	again := func(attempt int, bits float64, change func(*sample.Sample)) {
		s := sample.Sample{Scenario: "raw/stream", Block: 1, Attempt: attempt, Metrics: sample.Metrics{sample.Throughput: bits}}
		change(&s)
		b.Samples = append(b.Samples, s)
	}
	again(1, 7e9, func(*sample.Sample) {})
	again(2, 1e9, func(s *sample.Sample) { s.Gates = []sample.Gate{{Name: sample.ForeignCPU}} })
	again(3, 2e9, func(s *sample.Sample) { s.Profiled = true })
	again(4, 3e9, func(s *sample.Sample) { s.Failure = &sample.Failure{Kind: sample.ToolHung} })
	got := newColumns(&b).values("raw/stream", sample.Throughput)
	if !slices.Equal(got, []float64{9.5e9, 7e9, 9.5e9}) {
		t.Errorf("values %v", got)
	}
	if info := newColumns(&b).info(); info.Trials != 12 || info.Invalid != 0 {
		t.Errorf("%+v", info)
	}
}

func TestScenarioThatIsDefinedOtherwiseIsLeftOutWithTheReason(t *testing.T) {
	a, b := made{id: "a", blocks: 8, seed: 1, noise: 0.01}.run(), made{id: "b", blocks: 8, seed: 2, noise: 0.01}.run()
	b.Plan.Scenarios[0].Fabric.MTU = 9000
	b.Plan.Scenarios[1].ID = "raw/other"
	b.Plan.Scenarios[2].Timing.Duration *= 2 // that alone is no other scenario
	b.Plan.Scenarios[2].Title = "renamed"
	c, err := Runs(a, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []LeftOut{
		{"raw/stream", "it is defined otherwise: fabric.mtu 1500 → 9000"},
		{"raw/other", "run A does not have it"}, {"raw/rr", "run B does not have it"},
	}
	if !slices.Equal(c.LeftOut, want) {
		t.Errorf("left out %+v", c.LeftOut)
	}
	if find(c.Values, "raw/stream", sample.Throughput) != nil || find(c.Values, "bridge/stream", sample.Throughput) == nil {
		t.Error("the wrong scenarios are compared")
	}
	if len(c.Ratios) != 0 {
		t.Errorf("%d rows of ratios to a baseline that is not comparable", len(c.Ratios))
	}
	if want := (Difference{Name: "timing of 1 scenario", A: "0s + 2s + 0s", B: "0s + 4s + 0s"}); !slices.Contains(c.Plan, want) {
		t.Errorf("plan %+v", c.Plan)
	}
}

func TestOtherMachineIsNeverBetterOrWorse(t *testing.T) {
	a := made{id: "a", blocks: 12, seed: 1, noise: 0.005}.run()
	b := made{id: "b", blocks: 12, seed: 2, noise: 0.005, scale: map[string]float64{"bridge/stream": 0.8}}.run()
	b.Run.Environment.CPUs = 2
	gates, err := ParseGates("gate.yaml", []byte("gates: [{metric: throughput_bps, worse_by: 3%}]"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Runs(a, b, Options{Gates: gates})
	if !errors.Is(err, ErrOtherMachine) || !strings.Contains(err.Error(), "CPUs 4 → 2") || !strings.Contains(err.Error(), "--across-machines") {
		t.Errorf("error %v", err)
	}
	if c == nil || c.Judgement != nil {
		t.Fatalf("comparison %+v", c)
	}
	if r := find(c.Values, "bridge/stream", sample.Throughput); r.Verdict != Differs {
		t.Errorf("%s", r.line())
	}
	c, err = Runs(a, b, Options{Gates: gates, AcrossMachines: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := find(c.Values, "bridge/stream", sample.Throughput); r.Verdict != Worse || c.Judgement.Status() != 1 {
		t.Errorf("%s, status %d", r.line(), c.Judgement.Status())
	}
}

func TestWhatCannotBeComparedIsAnErrorWithARemedy(t *testing.T) {
	good := func() Side { return made{id: "good", blocks: 8, seed: 1, noise: 0.01}.run() }
	for name, c := range map[string]struct {
		a, b Side
		opts Options
		says string
	}{
		"the same run":           {good(), good(), Options{}, "it is the same run; name another"},
		"no common scenario":     {good(), change(func(s *Side) { s.Plan.Scenarios[0].ID = "x"; s.Plan.Scenarios = s.Plan.Scenarios[:1] }), Options{}, "no scenario is in both: A has raw/stream, raw/rr"},
		"all defined otherwise":  {good(), change(func(s *Side) { each(s, func(sc *suite.Scenario) { sc.Tool = "iperf3" }) }), Options{}, `tool "builtin" → "iperf3"`},
		"no scenario at all":     {good(), Side{Run: sample.Run{ID: "empty"}}, Options{}, "B has none"},
		"no sample":              {good(), change(func(s *Side) { s.Samples = nil }), Options{}, "no trial of run b counts (it has none); run the suite again"},
		"all trials invalid":     {good(), change(func(s *Side) { gateAll(s) }), Options{}, "no trial of run b counts (foreign-cpu 32)"},
		"all trials failed":      {change(func(s *Side) { failAll(s) }), good(), Options{}, "no trial of run b counts (tool-hung 32)"},
		"metric that no run has": {good(), change(func(*Side) {}), Options{Metrics: []sample.Metric{sample.Cwnd}}, "measured were: throughput_bps, transactions_per_s"},
		"scenario that is not":   {good(), change(func(*Side) {}), Options{Scenarios: []string{"brigde"}}, `no scenario is called "brigde"; did you mean "bridge"?`},
		"pattern of no meaning":  {good(), change(func(*Side) {}), Options{Scenarios: []string{"[a"}}, "cannot be read"},
		"nothing but NaN":        {change(func(s *Side) { poison(s) }), change(func(s *Side) { s.Run.ID = "c"; poison(s) }), throughput, "neither run has"},
	} {
		got, err := Runs(c.a, c.b, c.opts)
		if got != nil || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, error %v, want %q", name, got != nil, err, c.says)
		}
	}
}

// change returns another run, changed.
func change(how func(*Side)) Side {
	s := made{id: "b", blocks: 8, seed: 2, noise: 0.01}.run()
	how(&s)
	return s
}

func each(s *Side, how func(*suite.Scenario)) {
	for i := range s.Plan.Scenarios {
		how(&s.Plan.Scenarios[i])
	}
}

func gateAll(s *Side) {
	for i := range s.Samples {
		s.Samples[i].Gates = []sample.Gate{{Name: sample.ForeignCPU}}
	}
}

func failAll(s *Side) {
	for i := range s.Samples {
		s.Samples[i].Failure = &sample.Failure{Kind: sample.ToolHung}
	}
}

func poison(s *Side) {
	for i := range s.Samples {
		s.Samples[i].Metrics = sample.Metrics{sample.Throughput: math.NaN()}
	}
}

func TestOneTrialHasNoIntervalAndNoVerdict(t *testing.T) {
	a, b := made{id: "a", blocks: 8, seed: 1, noise: 0.01}.run(), made{id: "b", blocks: 1, seed: 2, noise: 0.01}.run()
	c, err := Runs(a, b, throughput)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Values {
		if r := &c.Values[i]; r.Verdict != TooFew || r.Ratio != nil || r.P != nil || r.Smallest != nil || !strings.Contains(r.Note, "run B 1 trial") {
			t.Errorf("%s: ratio %v, p %v", r.line(), r.Ratio, r.P)
		}
	}
}

func TestTooFewTrialsSayHowManyWouldDo(t *testing.T) {
	a, b := made{id: "a", blocks: 3, seed: 1, noise: 0.01}.run(), made{id: "b", blocks: 3, seed: 2, noise: 0.01, scale: map[string]float64{"raw/stream": 0.5}}.run()
	c, err := Runs(a, b, throughput)
	if err != nil {
		t.Fatal(err)
	}
	// Three and three values have 20 orders, so no p-value below 2/20.
	for i := range c.Values {
		if r := &c.Values[i]; r.Verdict != TooFew || *r.MinimumP < 0.1 {
			t.Errorf("%s, floor %v", r.line(), *r.MinimumP)
		}
		// The extremes of three hold their median with 75 %, not with 95 %.
		if r := &c.Values[i]; r.Ratio.Level >= 0.95 || !strings.Contains(r.line(), "] at ") {
			t.Errorf("%s, level %v", r.line(), r.Ratio.Level)
		}
	}
	// Five and five have 252: 2/252 × 2 rows is 0.016; four and four are not enough.
	if note := c.Notes[len(c.Notes)-1]; !strings.Contains(note, "it takes 5 valid trials") {
		t.Errorf("note %q", note)
	}
}

func TestZeroVarianceIsNoMistake(t *testing.T) {
	a, b := made{id: "a", blocks: 8, seed: 1}.run(), made{id: "b", blocks: 8, seed: 2, scale: map[string]float64{"bridge/stream": 0.9}}.run()
	c, err := Runs(a, b, throughput)
	if err != nil {
		t.Fatal(err)
	}
	r := find(c.Values, "bridge/stream", sample.Throughput)
	if r.Verdict != Worse || math.Abs(r.Ratio.Low-0.9) > 1e-9 || math.Abs(r.Ratio.High-0.9) > 1e-9 {
		t.Errorf("%s", r.line())
	}
	if r := find(c.Values, "raw/stream", sample.Throughput); r.Verdict != Alike || r.Ratio.Median != 1 || *r.P != 1 {
		t.Errorf("%s, p %v", r.line(), *r.P)
	}
}

func TestCountsOfZeroHaveNoRatioAndAreStillJudged(t *testing.T) {
	a, b := made{id: "a", blocks: 8, seed: 1}.run(), made{id: "b", blocks: 8, seed: 2}.run()
	for i := range b.Samples {
		if b.Samples[i].Scenario == "bridge/stream" {
			b.Samples[i].Metrics[sample.Retransmits] = float64(100 + i)
		}
	}
	c, err := Runs(a, b, Options{Metrics: []sample.Metric{sample.Retransmits}})
	if err != nil {
		t.Fatal(err)
	}
	if r := find(c.Values, "bridge/stream", sample.Retransmits); r.Verdict != Worse || r.Ratio != nil || r.Note == "" {
		t.Errorf("%s", r.line())
	}
	if r := find(c.Values, "raw/stream", sample.Retransmits); r.Verdict != Alike || r.Ratio != nil {
		t.Errorf("%s", r.line())
	}
}

func TestScenarioThatOneRunCouldNotMeasureSaysWhy(t *testing.T) {
	a, b := made{id: "a", blocks: 8, seed: 1, noise: 0.01}.run(), made{id: "b", blocks: 8, seed: 2, noise: 0.01}.run()
	b.Run.Skipped = map[string]string{"bridge/stream": "no bridge here"}
	b.Samples = slices.DeleteFunc(b.Samples, func(s sample.Sample) bool { return s.Scenario == "bridge/stream" })
	for i := range b.Samples {
		if b.Samples[i].Scenario == "raw/stream" {
			b.Samples[i].Gates = []sample.Gate{{Name: sample.Steal}}
		}
	}
	c, err := Runs(a, b, throughput)
	if err != nil {
		t.Fatal(err)
	}
	if r := find(c.Values, "bridge/stream", sample.Throughput); r.Verdict != NotMeasured || r.Note != "run B: skipped: no bridge here" {
		t.Errorf("%s", r.line())
	}
	if r := find(c.Values, "raw/stream", sample.Throughput); r.Verdict != NotMeasured || r.Note != "run B: no trial counts: steal 8" {
		t.Errorf("%s", r.line())
	}
}

func TestIdenticalSoftwareSeldomDiffers(t *testing.T) {
	wrong := 0
	const runs = 60
	for i := range uint64(runs) {
		a, b := made{id: "a", blocks: 8, seed: 100 + 2*i, noise: 0.02}.run(), made{id: "b", blocks: 8, seed: 101 + 2*i, noise: 0.02}.run()
		c, err := Runs(a, b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(c.Values, func(r Row) bool { return r.Verdict == Worse || r.Verdict == Better }) {
			wrong++
		}
	}
	// Holm keeps the chance of any false row in a whole comparison at 5 %: of
	// 60, more than 8 have a probability below 1 %.
	if wrong > 8 {
		t.Errorf("%d of %d comparisons of equals call something different", wrong, runs)
	}
}

func TestTrialsThatRowsNeedAreThoseOfTheExactTest(t *testing.T) {
	// Of n and n values the smallest p is 2 / C(2n, n): 2/924 and 2/3432.
	for rows, want := range map[int]int{1: 4, 23: 6, 24: 7, 85: 7, 86: 8} {
		if got := enough(rows); got != want {
			t.Errorf("%d rows need %d trials, want %d", rows, got, want)
		}
	}
}
