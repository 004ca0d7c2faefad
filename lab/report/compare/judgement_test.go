package compare

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"windtunnel/internal/must"
	"windtunnel/lab/report/markdown"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
)

func gatesOf(t *testing.T, text string) *Gates {
	t.Helper()
	return must.Get(ParseGates("gate.yaml", []byte(text)))(t)
}

// judged compares and returns the outcome of every row by scenario and metric.
func judged(t *testing.T, a, b []Side, gates string) (*Comparison, map[string]Outcome) {
	t.Helper()
	c := must.Get(Runs(a, b, Options{Gates: gatesOf(t, gates)}))(t)
	outcomes := make(map[string]Outcome)
	for _, g := range c.Judgement.Gates {
		for _, f := range g.Findings {
			outcomes[f.Scenario+" "+string(f.Metric)] = f.Outcome
		}
	}
	return c, outcomes
}

func TestGateFailsOnARegressionOfItsSize(t *testing.T) {
	a := made{id: "a", blocks: 10, seed: 1, noise: 0.005}.runs()
	b := made{id: "b", blocks: 10, seed: 2, noise: 0.005, scale: map[string]float64{"bridge/stream": 0.95}}.runs()
	for gate, status := range map[string]int{
		"gates: [{metric: throughput_bps, worse_by: 3%}]":                                1,
		"gates: [{metric: throughput_bps, worse_by: 0%}]":                                1,
		"gates: [{metric: throughput_bps, worse_by: 8%}]":                                0,
		"gates: [{metric: throughput_bps, worse_by: 3%, scenarios: raw}]":                0,
		"gates: [{metric: throughput_bps, worse_by: 3%, of: ratio}]":                     1,
		"gates: [{metric: [throughput_bps, latency_ns_p50], worse_by: 3%}]":              1,
		"gates: [{metric: sender_cpu_ns_per_byte, worse_by: 3%, scenarios: '*/stream'}]": 0,
	} {
		c, outcomes := judged(t, a, b, gate)
		if c.Judgement.Status() != status {
			t.Errorf("%s: status %d, want %d: %v", gate, c.Judgement.Status(), status, outcomes)
		}
		if status == 1 && (outcomes["bridge/stream throughput_bps"] != Failed || c.Judgement.Count(Failed) != 1) {
			t.Errorf("%s: the outcomes are %v, want that only the throughput of the bridge fails", gate, outcomes)
		}
	}
}

func TestImprovementPassesEveryGate(t *testing.T) {
	a := made{id: "a", blocks: 10, seed: 1, noise: 0.005}.runs()
	b := made{id: "b", blocks: 10, seed: 2, noise: 0.005, scale: map[string]float64{"bridge/rr": 1.2}}.runs()
	c, outcomes := judged(t, a, b, "gates: [{metric: [latency_ns_p50, transactions_per_s], worse_by: 0%, scenarios: bridge/rr}]")
	if c.Judgement.Status() != 0 || outcomes["bridge/rr latency_ns_p50"] != Passed || outcomes["bridge/rr transactions_per_s"] != Passed {
		t.Errorf("the outcomes are %v, want that latency and transactions pass", outcomes)
	}
}

func TestNoiseThatHidesTheGatesSizeIsNotJudgedUnlessTheGateSaysHow(t *testing.T) {
	a, b := made{id: "a", blocks: 10, seed: 5, noise: 0.2}.runs(), made{id: "b", blocks: 10, seed: 6, noise: 0.2}.runs()
	for onDoubt, want := range map[string]struct {
		status  int
		outcome Outcome
	}{
		"": {2, Unjudged}, ", on_doubt: unjudged": {2, Unjudged}, ", on_doubt: pass": {0, Doubtful}, ", on_doubt: fail": {1, Failed},
	} {
		c, outcomes := judged(t, a, b, "gates: [{metric: throughput_bps, worse_by: 1%, scenarios: raw/stream"+onDoubt+"}]")
		if c.Judgement.Status() != want.status || outcomes["raw/stream throughput_bps"] != want.outcome {
			t.Errorf("%q: status %d, %v, want %d, %s", onDoubt, c.Judgement.Status(), outcomes, want.status, want.outcome)
		}
		text := c.Judgement.Gates[0].Findings[0].Text
		if says := "the spread between runs hides a change of 1 %: name more runs for each side"; !strings.Contains(text, says) || strings.Contains(text, "on_doubt: pass") != (want.outcome == Unjudged) {
			t.Errorf("%q: text %q", onDoubt, text)
		}
	}
}

func TestScenarioThatVanishedDoesNotPass(t *testing.T) {
	a := made{id: "a", blocks: 10, seed: 1, noise: 0.005}.runs()
	b := made{id: "b", blocks: 10, seed: 2, noise: 0.005}.runs()
	for k := range b {
		for i := range b[k].Samples {
			if b[k].Samples[i].Scenario == "bridge/stream" {
				b[k].Samples[i].Failure = &sample.Failure{Kind: sample.NoConnectivity}
			}
		}
	}
	c, outcomes := judged(t, a, b, "gates: [{metric: throughput_bps, worse_by: 3%}]")
	if c.Judgement.Status() != 2 || outcomes["bridge/stream throughput_bps"] != Unjudged || outcomes["raw/stream throughput_bps"] != Passed {
		t.Errorf("status %d, %v", c.Judgement.Status(), outcomes)
	}
}

func TestGateWithTooFewTrialsIsNotJudged(t *testing.T) {
	a, b := made{id: "a", blocks: 1, seed: 1}.runs(), made{id: "b", blocks: 1, seed: 2}.runs()
	c, _ := judged(t, a, b, "gates: [{metric: throughput_bps, worse_by: 3%}]")
	if c.Judgement.Status() != 2 || c.Judgement.Count(Unjudged) != 2 {
		t.Errorf("status %d", c.Judgement.Status())
	}
}

func TestOnlyMetricsOfGatesAreCorrected(t *testing.T) {
	a, b := made{id: "a", blocks: 6, seed: 1, noise: 0.005}.runs(), made{id: "b", blocks: 6, seed: 2, noise: 0.005, scale: map[string]float64{"bridge/stream": 0.9}}.runs()
	c, _ := judged(t, a, b, "gates: [{metric: throughput_bps, worse_by: 3%, scenarios: bridge/stream}]")
	if len(c.Values) != 1 || *c.Values[0].Adjusted != *c.Values[0].P {
		t.Errorf("%d rows", len(c.Values))
	}
}

func TestGateThatHasNothingToJudgeIsAnErrorWithItsLine(t *testing.T) {
	a, b := made{id: "a", blocks: 8, seed: 1}.runs(), made{id: "b", blocks: 8, seed: 2}.runs()
	changed := made{id: "b", blocks: 8, seed: 2}.runs()
	for i := range changed {
		changed[i].Plan.Scenarios[2].Pairs = 4
	}
	for name, c := range map[string]struct {
		b    []Side
		text string
		says []string
	}{
		"unknown scenario":    {b, "gates:\n- metric: throughput_bps\n  worse_by: 3%\n  scenarios: bride/stream", []string{"gate.yaml:4:14", `did you mean "bridge/stream"?`}},
		"metric not measured": {b, "gates:\n- metric: [throughput_bps, tcp_rtt_ns]\n  worse_by: 3%", []string{"gate.yaml:2", "tcp_rtt_ns"}},
		"metric of others":    {b, "gates:\n- metric: [throughput_bps, latency_ns_p50]\n  worse_by: 3%\n  scenarios: [raw/stream]", []string{"gate.yaml:2", "latency_ns_p50"}},
		"ratio of a baseline": {b, "gates:\n- metric: throughput_bps\n  worse_by: 3%\n  of: ratio\n  scenarios: [raw/stream]", []string{"gate.yaml:2", "of: value"}},
		"changed definition":  {changed, "gates:\n- metric: throughput_bps\n  worse_by: 3%\n  scenarios: [raw/stream, bridge/stream]", []string{"gate.yaml:2", "pairs 1 → 4"}},
	} {
		_, err := Runs(a, c.b, Options{Gates: gatesOf(t, c.text)})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %q lacks %q", name, err, says)
			}
		}
	}
}

func TestTheJUnitReportHasTheResultsOfTheGates(t *testing.T) {
	a := made{id: "a", blocks: 10, seed: 1, noise: 0.005}.runs()
	b := made{id: "b", blocks: 10, seed: 2, noise: 0.005, scale: map[string]float64{"bridge/stream": 0.9}}.runs()
	for k := range b {
		for i := range b[k].Samples {
			if b[k].Samples[i].Scenario == "raw/rr" {
				b[k].Samples[i].Failure = &sample.Failure{Kind: sample.ToolFailed}
			}
		}
	}
	c, _ := judged(t, a, b, "gates:\n- {metric: throughput_bps, worse_by: 3%}\n- {metric: latency_ns_p50, worse_by: 0.001%, on_doubt: pass}")
	var out bytes.Buffer
	must.Succeed(t, WriteJUnit(&out, c))
	var got junit
	must.Succeed(t, xml.Unmarshal(out.Bytes(), &got))
	if got.Tests != 4 || got.Failures != 1 || got.Errors != 1 || got.Skipped != 1 || len(got.Suites) != 2 {
		t.Fatalf("the JUnit file has %+v, want 2 suites with 4 tests: 1 failure, 1 error, 1 skipped", got)
	}
	stream := got.Suites[0]
	if stream.Name != "throughput_bps worse by 3 %" || stream.Tests != 2 || stream.Failures != 1 || stream.Timestamp != "2026-11-20T08:20:00" {
		t.Errorf("the first suite is %+v, want 2 tests of the throughput with 1 failure", stream)
	}
	failed := stream.Cases[1]
	if failed.Class != "bridge/stream" || failed.Name != "throughput_bps" || failed.Failure == nil || !strings.Contains(failed.Failure.Message, "worse by") || !strings.Contains(failed.Failure.Text, "ratio 0.") {
		t.Errorf("the second case is %+v, want the failure of bridge/stream with its ratio", failed)
	}
	if passed := stream.Cases[0]; passed.Failure != nil || passed.Skipped != nil || passed.Output == nil {
		t.Errorf("the first case is %+v, want passed, with its figures", passed)
	}
	for _, x := range got.Suites[1].Cases {
		if x.Class == "raw/rr" && (x.Error == nil || !strings.Contains(x.Error.Message, "tool-failed")) || x.Class == "bridge/rr" && x.Skipped == nil {
			t.Errorf("the case is %+v, want an error for raw/rr and skipped for bridge/rr", x)
		}
	}
	c.Judgement = nil
	if err := WriteJUnit(&out, c); err == nil {
		t.Error("a report of no gate was written")
	}
}

// narrow fails where a line is longer than a terminal's.
func narrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

func TestATableOfLongTextsFitsATerminal(t *testing.T) {
	a := made{id: strings.Repeat("run-a-", 10), blocks: 10, seed: 1, noise: 0.005}.runs()
	b := made{id: "run-b", blocks: 10, seed: 2, noise: 0.005, scale: map[string]float64{"bridge/stream": 0.9}}.runs()
	b[0].Run.Environment.CPUModel = strings.Repeat("a processor of many words ", 8)
	b[0].Run.Environment.Kernel = strings.Repeat("x", 150)
	c := must.Get(Runs(a[:1], b[:1], Options{AcrossMachines: true}))(t)
	var table bytes.Buffer
	must.Succeed(t, text.Write(&table, c.Document(), text.Options{}))
	narrow(t, table.String())
	for _, want := range []string{"\nbridge/stream\n  throughput, Gbit/s ", "\nbridge/stream / raw/stream\n  throughput ", "  verdict\n"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("lacks %q:\n%s", want, table.String())
		}
	}
}

func TestWrittenFormsHaveTheFiguresAndTheFailureLast(t *testing.T) {
	a := made{id: "run-a", blocks: 10, seed: 1, noise: 0.005}.runs()
	b := made{id: "run-b", blocks: 10, seed: 2, noise: 0.005, scale: map[string]float64{"bridge/stream": 0.9}}.runs()
	b[0].Run.Environment.Revision = "fff\x1b[31m|x"
	c, _ := judged(t, a, b, "gates: [{metric: throughput_bps, worse_by: 3%}]")
	var table, page, document bytes.Buffer
	must.Succeed(t, errors.Join(text.Write(&table, c.Document(), text.Options{}), markdown.Write(&page, c.Document()), json.NewEncoder(&document).Encode(c)))
	written := table.String()
	if strings.Index(written, "windtunnel revision") > strings.Index(written, "B over A") {
		t.Error("figures come before the environment")
	}
	last := strings.Join(strings.Fields(written[strings.LastIndex(written, "\n• FAILED: "):]), " ")
	if !strings.HasPrefix(last, "• FAILED: gate of line 1") || !strings.Contains(last, "bridge/stream throughput: worse by") {
		t.Errorf("the last gate is %q", last)
	}
	narrow(t, written)
	if strings.Contains(written, "\x1b") || strings.Contains(page.String(), "\x1b") {
		t.Error("a name reaches the terminal as it is")
	}
	if !strings.Contains(page.String(), `\|x`) || !strings.Contains(page.String(), "| throughput, Gbit/s | ") {
		t.Errorf("markdown:\n%s", page.String())
	}
	var back Comparison
	must.Succeed(t, json.Unmarshal(document.Bytes(), &back))
	r := find(back.Values, "bridge/stream", sample.Throughput)
	if r == nil || r.Verdict != Worse || math.Abs(r.Ratio.Median-0.9) > 0.01 || back.Judgement.Gates[0].Findings[1].Outcome != Failed {
		t.Errorf("read back: %+v", r)
	}
}
