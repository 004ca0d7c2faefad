package report_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/lists"
	"windtunnel/internal/must"
	"windtunnel/internal/phrase"
	"windtunnel/lab/report"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
)

func rigorous(t testing.TB) *model.Report {
	t.Helper()
	run, plan, samples := reporttest.Rigorous()
	return report.Build(run, plan, samples)
}

func TestTrialsThatFailAGateAreInNoFigure(t *testing.T) {
	r := rigorous(t)
	v := row(t, r, "vxlan/stream")
	if v.Trials != 11 || v.Failed != 1 || v.Throughput.N != 11 || len(v.Samples) != 12+2+2 {
		t.Errorf("vxlan/stream: %d trials, %d failed, N %d, %d samples", v.Trials, v.Failed, v.Throughput.N, len(v.Samples))
	}
	g := row(t, r, "geneve/stream")
	if g.Trials != 0 || g.Throughput != nil || g.Metrics != nil || g.Retransmits != nil || len(g.Samples) != 12 {
		t.Errorf("geneve/stream has figures: %+v", g)
	}
	// Eight scenarios of 12 blocks, less one block of vxlan/stream and one of vxlan/rr.
	must.Equal(t, 8*12-2, strings.Count(written(t, export.WriteBenchfmt, r), "\nBenchmark"))
}

func TestScenarioOfInvalidTrialsAloneSaysSoWithTheFigure(t *testing.T) {
	r := rigorous(t)
	const want = "could not be measured in 12 attempts (foreign-cpu 12×, worst 31.0 %)"
	must.Equal(t, want, rejected.Unmeasured(row(t, r, "geneve/stream")))
	for _, s := range r.Scenarios {
		if why := rejected.Unmeasured(&s); (why != "") != (s.ID == "geneve/stream") {
			t.Errorf("%s lacks figures because %q, want a reason for geneve/stream only", s.ID, why)
		}
	}
	broken := &model.Scenario{Samples: []sample.Sample{
		{Failure: &sample.Failure{Kind: sample.ToolHung}}, {Gates: []sample.Gate{{Name: sample.Steal, Value: 3.1, Unit: "%"}}}, {Profiled: true},
	}}
	must.Equal(t, "could not be measured in 2 attempts (steal 3.10 %; tool-hung)", rejected.Unmeasured(broken))
}

func TestValidityCountsEveryTrialOnce(t *testing.T) {
	v := rigorous(t).Validity
	if v.Attempts != v.Valid+v.Failed+v.Gated || v.Valid != 8*12-2 || v.Failed != 3 || v.Gated != 1+2+12 || v.Profiled != 4 {
		t.Errorf("the counts are %+v, want 94 valid, 3 failed, 15 gated and 4 profiled trials", v)
	}
	var gates []string
	for _, g := range v.Gates {
		gates = append(gates, rejected.Text(g))
	}
	must.Equal(t, []string{"foreign-cpu 13×, worst 31.0 %", "steal 2×, worst 4.20 %"}, gates)
	must.Equal(t, map[string]int{"vxlan/stream": 1, "vxlan/rr": 1, "geneve/stream": 12}, v.Missing)
	want := "94 of 112 attempts count; 15 measured under conditions that were not valid (foreign-cpu 13×, worst 31.0 %; steal 2×, worst 4.20 %), 3 failed and 4 more ran with the profiler, which shows where the CPU time goes."
	must.Equal(t, want, rejected.Line(v))
	for want, v := range map[string]model.Validity{
		"No trial was made.": {},
		"All 8 trials count: none failed, and the conditions were valid in every one.": {Attempts: 8, Valid: 8},
		"The only trial counts: the conditions were valid.":                            {Attempts: 1, Valid: 1},
		"8 of 8 trials count, 3 of them in spite of conditions that were not valid (foreign-cpu 3×, worst 94.0 %).": {Attempts: 8, Valid: 8, Warned: 3,
			Gates: []model.GateCount{{Name: sample.ForeignCPU, Trials: 3, Worst: sample.Gate{Value: 94, Limit: 3, Unit: "%"}}}},
		"8 of 9 attempts count, 3 of them in spite of conditions that were not valid; 1 left out because of such conditions (of all these attempts: foreign-cpu 4×, worst 94.0 %).": {Attempts: 9, Valid: 8, Warned: 3, Gated: 1,
			Gates: []model.GateCount{{Name: sample.ForeignCPU, Trials: 4, Worst: sample.Gate{Value: 94, Limit: 3, Unit: "%"}}}},
		"0 of 1 attempt count; 1 failed.": {Attempts: 1, Failed: 1},
	} {
		must.Equal(t, want, rejected.Line(v))
	}
}

// Outcomes are counted over the trials that count, separately from conditions.
func TestOutcomesAreCountedByScenario(t *testing.T) {
	r := rigorous(t)
	must.Equal(t, phrase.Lines{"bridge/stream: 1 of 12 trials had an unsteady rate (by up to 14.0 %)."}, rejected.Outcomes(r))
	s := model.Scenario{ID: "a", Trials: 9, Flags: []model.GateCount{
		{Name: sample.OffTarget, Trials: 9, Worst: sample.Gate{Value: 80, Limit: 90, Unit: "%"}}, {Name: sample.StillMoving, Trials: 2, Worst: sample.Gate{Value: 3, Limit: 1, Unit: "%"}},
	}}
	want := phrase.Lines{"a: 9 of 9 trials sent less than requested (as little as 80.0 % of the requested rate).", "a: 2 of 9 trials had traffic after the tools' end (up to 3.00 % of the rate)."}
	must.Equal(t, want, rejected.Outcomes((&model.Report{Scenarios: []model.Scenario{s}})))
}

// With --gates warn the report names a failed condition, but not as an outcome.
func TestTrialsThatCountUnderInvalidConditionsAreReported(t *testing.T) {
	run, plan := twoSystems()
	samples := column("a/stream", sample.Throughput, 4, 5)
	samples[0].Flags = []sample.Gate{{Name: sample.ForeignCPU, Value: 94, Limit: 3, Unit: "%"}, {Name: sample.Unsteady, Value: 12, Limit: 10, Unit: "%"}}
	r := report.Build(run, plan, samples)
	if r.Validity.Valid != 2 || r.Validity.Warned != 1 || !strings.Contains(rejected.Line(r.Validity), "1 of them in spite of conditions that were not valid (foreign-cpu 94.0 %)") {
		t.Errorf("the counts are %+v and the line %s, want 2 valid trials, one of them with a warning", r.Validity, rejected.Line(r.Validity))
	}
	if got := rejected.Outcomes(r); len(got) != 1 || !strings.Contains(got[0], "unsteady") {
		t.Errorf("outcomes %q", got)
	}
}

func TestTroublesSeparateLostTrialsFromRepeatedTrials(t *testing.T) {
	var got []string
	for _, tr := range rejected.Troubles(rigorous(t)) {
		if strings.HasSuffix(tr.Scenario, "/stream") {
			got = append(got, tr.String())
		}
	}
	want := []string{
		"bridge/stream: repeated 1 trial (tool-hung): builtin client on a1 did not end within 12 s and was killed; the trial is repeated",
		"macvlan/stream: skipped: this kernel has no macvlan: load the module with `modprobe macvlan`",
		"vxlan/stream: 1 of 12 trials left out as not valid (steal): the machine's host took 4.2 % of node a's CPUs, more than the 2 % that pass",
		"geneve/stream: 12 of 12 trials left out as not valid (foreign-cpu): worst: processes outside the experiment used 31 % of node b's CPUs, more than the 3 % that pass",
		"vxlan/stream: repeated 1 trial (foreign-cpu): processes outside the experiment used 31 % of node b's CPUs, more than the 3 % that pass",
	}
	must.Equal(t, want, got)
}

func TestOneTroubleNamesAllScenariosOfAGate(t *testing.T) {
	far := func(block int, distance float64) sample.Sample {
		return sample.Sample{Block: block, Gates: []sample.Gate{{
			Name: sample.CPUMoved, Value: distance, Limit: 100, Unit: "ns",
			Message: fmt.Sprintf("the CPUs were %.0f ns from each other; the run measures at 90 ns: use --cpu-distance any", distance),
		}}}
	}
	r := &model.Report{Scenarios: []model.Scenario{
		{ID: "a/stream", Trials: 2, Failed: 1, Samples: []sample.Sample{far(0, 421), {Block: 0}, {Block: 1}, far(2, 410)}},
		{ID: "b/stream", Trials: 3, Samples: []sample.Sample{{Block: 0}, far(1, 412), {Block: 1}, far(2, 430), {Block: 2}}},
		{ID: "c/stream", Trials: 1, Failed: 2, Samples: []sample.Sample{{Block: 0}, far(1, 402), far(2, 401)}},
	}}
	must.Equal(t, []string{
		"3 trials left out as not valid (cpu-distance): a/stream 1 of 3, c/stream 2 of 3; worst: the CPUs were 410 ns from each other; the run measures at 90 ns",
		"repeated 3 trials (cpu-distance): a/stream 1, b/stream 2; worst: the CPUs were 430 ns from each other; the run measures at 90 ns",
	}, lists.Map(rejected.Troubles(r), rejected.Trouble.String))
}

func TestCSVShowsGatesAndProfiledTrials(t *testing.T) {
	run, plan := twoSystems()
	samples := column("a/stream", sample.Throughput, 4, 5)
	samples[0].Gates = []sample.Gate{{Name: sample.Steal, Message: "4 % stolen"}, {Name: sample.ClockJump, Message: "the clock jumped, by 2 s"}}
	samples[0].Flags = []sample.Gate{{Name: sample.OffTarget, Message: "80 % sent"}}
	samples[1].Profiled = true
	rows := must.Get(csv.NewReader(strings.NewReader(written(t, export.WriteCSV, report.Build(run, plan, samples)))).ReadAll())(t)
	gates, flags, profiled := slices.Index(rows[0], "gates"), slices.Index(rows[0], "flags"), slices.Index(rows[0], "profiled")
	if gates < 0 || flags < 0 || profiled < 0 {
		t.Fatalf("columns %q", rows[0])
	}
	if rows[1][gates] != "steal: 4 % stolen; clock-jump: the clock jumped, by 2 s" || rows[1][flags] != "off-target: 80 % sent" || rows[1][profiled] != "false" || rows[2][gates] != "" || rows[2][profiled] != "true" {
		t.Errorf("rows %q %q", rows[1][:12], rows[2][:12])
	}
}

func TestGateWithoutAFiniteFigureKeepsItsMessage(t *testing.T) {
	run, plan := twoSystems()
	samples := column("a/stream", sample.Throughput, 1)
	samples[0].Gates = []sample.Gate{{Name: sample.Unsteady, Value: math.NaN(), Limit: math.Inf(1), Unit: "%", Message: "no slope"}}
	r := report.Build(run, plan, samples)
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("encode the report as JSON: %v", err)
	}
	if got := row(t, r, "a/stream"); got.Samples[0].Gates[0].Message != "no slope" || rejected.Unmeasured(got) != "could not be measured in 1 attempt (unsteady-rate)" {
		t.Errorf("the gates are %+v and the reason %q, want an unsteady rate without a slope", got.Samples[0].Gates, rejected.Unmeasured(got))
	}
	if !math.IsNaN(samples[0].Gates[0].Value) {
		t.Error("the caller's sample was changed")
	}
}

func rejecting(gate sample.Gate, o sample.Options, status sample.Status) *model.Report {
	var samples []sample.Sample
	for block := range 6 {
		s := atDistance(block, 52, 13e9)
		if block > 2 {
			s.Gates = []sample.Gate{gate}
		}
		samples = append(samples, s)
	}
	return report.Build(sample.Run{ID: "r1", Options: o, Status: status}, oneScenario(), samples)
}

// A report contains each remedy once, at its end.
func TestTheAdviceIsGivenOnceAtTheEnd(t *testing.T) {
	gate := sample.Gate{Name: sample.ForeignCPU, Value: 46.2, Limit: 3, Unit: "%", Message: "programs used 46.2 % of the CPUs; the limit is 3 %: end them"}
	for _, c := range []struct {
		o    sample.Options
		s    sample.Status
		want string
	}{
		{sample.Options{}, sample.Complete, "`--gates warn`: such attempts then count"},
		{sample.Options{}, sample.Empty, "`windtunnel run --resume r1 --gates warn`: such attempts then count"},
		{sample.Options{Lenient: true}, sample.Complete, ""},
	} {
		r := rejecting(gate, c.o, c.s)
		for name, text := range map[string]string{"table": tabled(t, r, text.Options{Width: 200}), "explanation": explained(r)} {
			if n := strings.Count(text, "the limit is 3 %: end them"); n != min(len(c.want), 1) {
				t.Errorf("the %s gives the remedy %d times:\n%s", name, n, text)
			}
			if n := strings.Count(text, "gates warn`: such attempts"); n != min(len(c.want), 1) || !strings.Contains(text, c.want) {
				t.Errorf("the %s names --gates warn %d times, want %q:\n%s", name, n, c.want, text)
			}
		}
	}
}

func TestTheMethodSaysHowATrialThatFailsACheckIsTreated(t *testing.T) {
	for lenient, want := range map[bool]string{false: "fails such a check is repeated;", true: "fails such a check counts, with a flag (--gates warn)."} {
		text := written(t, asMarkdown, rejecting(sample.Gate{Name: sample.Steal}, sample.Options{Lenient: lenient}, sample.Complete))
		if !strings.Contains(text, want) || strings.Contains(text, "repeated") == lenient {
			t.Errorf("lenient %v: the method lacks %q:\n%s", lenient, want, text)
		}
	}
}

func TestABriefTextHasTheMeaningOfTheDistanceCheck(t *testing.T) {
	for want, g := range map[string]sample.Gate{
		"CPU distance no slice at one distance":                {Name: sample.CPUMoved, Limit: 50, Unit: "%"},
		"CPU distance only 44 % of the slices at one distance": {Name: sample.CPUMoved, Value: 44, Limit: 50, Unit: "%"},
		"CPU distance 451 ns":                                  {Name: sample.CPUMoved, Value: 451, Limit: 100, Unit: "ns"},
		"CPU distance not read":                                {Name: sample.CPUMoved, Unit: "ns"},
		"foreign CPU 46.2 %, compile":                          {Name: sample.ForeignCPU, Value: 46.2, Unit: "%", Culprit: "compile"},
	} {
		must.Equal(t, want, rejected.Brief([]sample.Gate{g}))
	}
}

func TestTroublesHaveEachReasonOnce(t *testing.T) {
	got := rejected.Troubles(reporttest.Quick())
	want := []rejected.Trouble{
		{Scenario: "bridge/stream", What: "repeated 1 trial", Kind: sample.ToolHung, Reason: "builtin client on a1 did not end within 12 s and was killed; the trial is repeated"},
		{Scenario: "vxlan/rr", What: "1 of 6 trials without figures", Kind: sample.NoResult, Reason: "builtin client on a1 ended well but printed no result"},
		{Scenario: "macvlan/stream", What: "skipped", Kind: "", Reason: "this kernel has no macvlan: load the module with `modprobe macvlan`"},
	}
	must.Equal(t, want, got)
}
