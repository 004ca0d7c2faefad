package report_test

import (
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// atDistance makes a trial with this CPU distance, in ns, in all time slices.
func atDistance(block int, distance, bits float64) sample.Sample {
	s := sample.Sample{Scenario: "bridge/stream", Block: block, Metrics: sample.Metrics{
		sample.Throughput: bits, sample.SenderCPU: 50, sample.ReceiverCPU: 70, sample.WindowSeconds: 1,
		sample.CPUDistance: distance, sample.MemoryCopy: 64e9,
	}}
	for i := range 10 {
		s.Series = append(s.Series, sample.Point{At: float64(i+1) / 10, Seconds: 0.1, Bits: bits, CPUDistance: distance})
	}
	return s
}

func oneScenario() suite.Plan {
	return suite.Plan{Suite: "quick", Trials: 8, Scenarios: []suite.Scenario{{ID: "bridge/stream", System: "bridge", Workload: suite.Workload{Kind: suite.TCPStream, Name: "stream"}}}}
}

func TestTrialsAtAnotherDistanceAreListedSeparately(t *testing.T) {
	var samples []sample.Sample
	for block := range 8 {
		samples = append(samples, atDistance(block, 52+float64(block), 13e9))
	}
	samples = append(samples, atDistance(8, 335, 8e9), atDistance(9, 340, 8e9))
	plan := oneScenario()
	plan.Trials = 10
	plan.Scenarios = append(plan.Scenarios, suite.Scenario{ID: "bridge/rr", System: "bridge", Workload: suite.Workload{Kind: suite.TCPRR, Name: "rr"}})
	r := report.Build(sample.Run{}, plan, samples)
	if tables := tables.OfElsewhere(&r.Elsewhere[0]); len(tables) != 1 || tables[0].Exchange {
		t.Errorf("tables of the other distance: %+v, want only the table of the streams", tables)
	}
	if iv := r.Scenarios[0].Throughput; iv == nil || iv.High != 13e9 || iv.Low != 13e9 || r.Scenarios[0].Trials != 8 {
		t.Errorf("the figures of the distance that most trials ran at: %+v of %d trials", iv, r.Scenarios[0].Trials)
	}
	if len(r.Elsewhere) != 1 || r.Elsewhere[0].Scenarios[0].Throughput.Median != 8e9 || r.Elsewhere[0].Scenarios[0].Trials != 2 {
		t.Fatalf("elsewhere: %+v", r.Elsewhere)
	}
	lines := strings.Join(sentences.Conditions(r), "\n")
	if want := "The figures hold for the nodes' CPUs 56 ns from each other (the host also had them at 340 ns for 20 % of the time) and memory copied at 8.0 GB/s.\n2 trials counted with the CPUs 338 ns from each other: too few for intervals; the HTML report has a table of their figures."; lines != want {
		t.Errorf("%q, want %q", lines, want)
	}
	if v := r.Validity; v.Attempts != 10 || v.Valid != 10 || v.Missing["bridge/stream"] != 0 || v.Missing["bridge/rr"] != 10 {
		t.Errorf("the counts are %+v, want 10 attempts of bridge/stream that count, at both distances, and no trial of bridge/rr", v)
	}
	must.Equal(t, len(samples), strings.Count(written(t, export.WriteCSV, r), "\nbridge/stream,"))
	shown := func(name, text string, table bool) {
		text = strings.Join(strings.Fields(text), " ")
		if !strings.Contains(text, "The figures hold for the nodes' CPUs 56 ns") || strings.Contains(text, "Trials in which the host had the CPUs 338 ns from each other") != table {
			t.Errorf("%s: the conditions are missing, or the table of the other distance is not as wanted (%t):\n%s", name, table, text)
		}
	}
	shown("the text of 2 trials", tabled(t, r, text.Options{}), false)
	shown("Markdown of 2 trials", written(t, asMarkdown, r), true)
	for block := 10; block < 14; block++ {
		samples = append(samples, atDistance(block, 338, 8e9))
	}
	plan.Trials = 14
	shown("the text of 6 trials", tabled(t, report.Build(sample.Run{}, plan, samples), text.Options{}), true)
}

func TestRunsAtOneDistanceHaveNoOtherTable(t *testing.T) {
	r := report.Build(sample.Run{}, oneScenario(), []sample.Sample{atDistance(0, 52, 13e9), atDistance(1, 53, 13e9)})
	if len(r.Elsewhere) != 0 || r.Scenarios[0].Trials != 2 {
		t.Errorf("%d trials, elsewhere %+v", r.Scenarios[0].Trials, r.Elsewhere)
	}
}

func TestSlicesLeftOutAreReported(t *testing.T) {
	s := atDistance(0, 52, 13e9)
	s.Series[3].LeftOut, s.Series[4].LeftOut, s.Series[7].LeftOut = sample.StolenSlice, sample.StolenSlice, sample.DistantSlice
	r := report.Build(sample.Run{}, oneScenario(), []sample.Sample{s})
	lines := strings.Join(sentences.Conditions(r), "\n")
	for _, want := range []string{"leave out 20 % of the measured time because the host ran other guests", "leave out 10 % of the measured time because the host moved"} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q lacks %q", lines, want)
		}
	}
}

func TestARunWithoutReadingsSaysNothingOfConditions(t *testing.T) {
	s := sample.Sample{Scenario: "bridge/stream", Metrics: sample.Metrics{sample.Throughput: 1}}
	if lines := sentences.Conditions(report.Build(sample.Run{}, oneScenario(), []sample.Sample{s})); len(lines) != 0 {
		t.Errorf("the conditions of a sample without a state are %q, want none", lines)
	}
}

func TestTheMostFrequentLimitIsShown(t *testing.T) {
	var samples []sample.Sample
	for block := range 10 {
		s := atDistance(block, 52, 13e9)
		if s.Limit = sample.SenderLimit; block < 3 {
			s.Limit = sample.ReceiverLimit
		}
		samples = append(samples, s)
	}
	r := report.Build(sample.Run{}, oneScenario(), samples)
	if want := "What limited the traffic: sender CPU: bridge/stream (70 % of its trials)."; !slices.Contains(sentences.Conditions(r), want) {
		t.Errorf("%q, want %q", sentences.Conditions(r), want)
	}
	for _, c := range tables.Of(r)[0].Columns {
		if c.Key == "limit" {
			must.Equal(t, "sender CPU (70 %)", c.Cells[0].Text)
			return
		}
	}
	t.Error("the table has no column of limits")
}

func TestARunThatAdjustsSaysSo(t *testing.T) {
	s, far := atDistance(0, 52, 13e9), atDistance(1, 335, 8e9)
	s.Series[3].Steal, far.Series[2].Steal = 10, 20
	r := report.Build(sample.Run{Options: sample.Options{Adjusted: true}}, oneScenario(), []sample.Sample{s, s, far})
	lines := strings.Join(sentences.Conditions(r), "\n")
	if !strings.Contains(lines, "took its CPUs away in 10 % of the time: the figures are adjusted") || len(r.Elsewhere) != 0 || r.Scenarios[0].Trials != 2 {
		t.Errorf("%q; %d trials; elsewhere %+v", lines, r.Scenarios[0].Trials, r.Elsewhere)
	}
}

// The explanation states the conditions as the report does.
func TestTheExplanationHasTheConditionsOfTheReport(t *testing.T) {
	r := report.Build(sample.Run{}, oneScenario(), []sample.Sample{atDistance(0, 52, 13e9), atDistance(1, 54, 13e9), atDistance(2, 335, 8e9), atDistance(3, 340, 8e9)})
	for _, s := range report.Explain(r).Sections {
		if s.Title == "Conditions" {
			if !slices.Equal(s.Sentences, sentences.Conditions(r)) || len(s.Sentences) != 2 || !strings.HasPrefix(s.Sentences[0], "The figures hold for ") {
				t.Errorf("%q, the report says %q", s.Sentences, sentences.Conditions(r))
			}
			return
		}
	}
	t.Errorf("no conditions: %+v", report.Explain(r))
}

func TestARunWithoutATrialThatCountsHasNoConditions(t *testing.T) {
	s := atDistance(0, 52, 13e9)
	s.Gates = []sample.Gate{{Name: sample.ForeignCPU, Value: 46, Limit: 3, Unit: "%"}}
	r := report.Build(sample.Run{}, oneScenario(), []sample.Sample{s})
	if lines := sentences.Conditions(r); len(lines) != 0 {
		t.Errorf("the conditions are %q, want none", lines)
	}
}

// bridgeAndVXLAN returns ten blocks with a trial of a bridge and a trial of VXLAN.
// distance returns the CPU distance, in ns, of the trial of system 0 (bridge) or 1.
func bridgeAndVXLAN(distance func(block, system int) float64) (suite.Plan, []sample.Sample) {
	plan := oneScenario()
	plan.Scenarios = append(plan.Scenarios, plan.Scenarios[0])
	plan.Scenarios[1].ID = "vxlan/stream"
	plan.Comparisons = []suite.Comparison{{Baseline: "bridge/stream", Subject: "vxlan/stream"}}
	var samples []sample.Sample
	for block := range 10 {
		for i := range plan.Scenarios {
			s := atDistance(block, distance(block, i), 13e9)
			s.Scenario = plan.Scenarios[i].ID
			samples = append(samples, s)
		}
	}
	return plan, samples
}

// In two blocks both scenarios have far CPUs. In the other blocks the bridge has near
// CPUs, and VXLAN has far ones.
func TestScenariosAtDifferentDistancesAreNotCompared(t *testing.T) {
	plan, samples := bridgeAndVXLAN(func(block, system int) float64 {
		if block < 2 || system == 1 {
			return 335
		}
		return 52
	})
	near := atDistance(10, 52, 13e9)
	near.Scenario = "vxlan/stream"
	r := report.Build(sample.Run{Options: sample.Options{CPUDistance: "near"}}, plan, append(samples, near))
	const want = "vxlan/stream and bridge/stream have figures, but no block has figures of both at this CPU distance (at another distance 2 blocks)"
	if len(r.Findings) != 1 || !strings.HasSuffix(r.Findings[0], want+".") {
		t.Errorf("the findings are %q, want one that ends with %q", r.Findings, want)
	}
	expectNote(t, r, want+", so they cannot be compared.")
}

func TestBlocksAtAnotherDistanceAreCountedBesideAComparison(t *testing.T) {
	plan, samples := bridgeAndVXLAN(func(block, system int) float64 {
		if block < 3 || block == 9 && system == 1 {
			return 335
		}
		return 52
	})
	expectNote(t, report.Build(sample.Run{}, plan, samples), "Some blocks are not compared, because both scenarios ran at another CPU distance than the one of these figures: 3 of 9 blocks of vxlan/stream and bridge/stream.")
}

func TestAScenarioWithTrialsOnlyAtAnotherDistanceHasRun(t *testing.T) {
	run, plan := steps("raw", "bridge")
	var samples []sample.Sample
	for block := range 8 {
		s := atDistance(block, 52, 13e9)
		samples = append(samples, s)
		if s = atDistance(block, 340, 8e9); block < 6 {
			s.Scenario = "raw/stream"
			samples = append(samples, s)
		}
	}
	const want = "raw/stream has no trial that counts at this CPU distance, but 6 trials at another distance"
	expectNote(t, report.Build(run, plan, samples), "the step the raw has no figures ("+want+")")
	// A failed attempt has no CPU distance, and must not be given as the reason.
	samples = append(samples, sample.Sample{Scenario: "raw/stream", Block: 6, Failure: &sample.Failure{Kind: sample.ToolHung}})
	r := report.Build(run, plan, samples)
	expectNote(t, r, "the step the raw has no figures ("+want+")")
	for _, s := range report.Explain(r).Sections {
		if s.Title == "What could not be said" && s.Sentences[0] != want+"." {
			t.Errorf("the explanation says %q, want %q", s.Sentences[0], want+".")
		}
	}
}
