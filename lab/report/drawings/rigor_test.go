package drawings

import (
	"encoding/json"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/sample"
)

// chartsOf is what the page's script gets.
func chartsOf(t *testing.T, page []byte) document.Charts {
	t.Helper()
	var c document.Charts
	must.Succeed(t, json.Unmarshal([]byte(block(t, page, "data")), &c))
	return c
}

func contains(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestRigorousPageSaysEverythingWithoutJavaScript(t *testing.T) {
	r := rigorous(t)
	text := browsertest.Readable(written(t, r))
	contains(t, text, rejected.Line(r.Validity), "2 of 5 trials had an unsteady rate (by up to 14.0 %).", gateMessage, "Planned trials without figures that count: vxlan/stream 1.", "foreign-cpu",
		r.Precision.Why,
		"receiver CPU of vxlan/stream to that of raw/stream is known within ±3.4 %",
		"≥ 0.7", "✓ holds", "✗ refuted", "? undecided",
		"what a stream pays", "encapsulation in VXLAN", "−0.4", "−3.6 %", "~ no difference shows", "not confirmed by the correction for many comparisons", "19 %", "no figures",
		"suggested", "detectable: 3.1 %", "too few trials to tell",
		"syscall and copy", "by the CPU meter", "rep_movs_alternative", "not in the sum", "With the profiler the traffic ran at 97 % [")
	for _, h := range r.Hypotheses {
		contains(t, text, h.Claim, h.Why)
	}
	if at, table := strings.Index(text, `id="answer"`), strings.Index(text, "<table"); at < 0 || table < at {
		t.Error("a table stands before the answer")
	}
}

func TestAnOlderReportHasNoneOfTheNewSections(t *testing.T) {
	r := reporttest.Quick()
	r.Validity, r.Precision, r.Ladders, r.Hypotheses, r.Profiles = model.Validity{}, nil, nil, nil, nil
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		c.Verdict, c.P, c.Adjusted, c.Detectable = "", nil, nil, nil
	}
	page := string(written(t, r))
	for _, id := range []string{"h-validity", "h-hypotheses", "h-ladders", "h-profiles", "flames"} {
		if strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("the page of an older run has %s", id)
		}
	}
	contains(t, page, `id="h-cards"`, `id="h-trials"`)
}

func TestTheTablesHaveTheMarksOfVerdictsAndTheirExplanation(t *testing.T) {
	contains(t, browsertest.Readable(written(t, reporttest.Quick())), "0.722 …<br><small>[0.714, 0.730]</small>", ">… too few trials to tell a difference from chance.</p>")
}

func TestOneLineSaysThatEveryTrialCounts(t *testing.T) {
	r := reporttest.Quick()
	r.Validity = model.Validity{Attempts: 48, Valid: 48}
	page := string(written(t, r))
	contains(t, page, `<li>`+rejected.Line(r.Validity)+`</li>`)
	if strings.Contains(page, "Attempts that do not count") {
		t.Error("there is something to unfold where nothing failed")
	}
}

func TestLongListsOfRejectedTrialsAreCutAndCounted(t *testing.T) {
	r := reporttest.Quick()
	row := scenario(r, "raw/stream")
	for i := range 300 {
		row.Samples = append(row.Samples, sample.Sample{Block: 100 + i, Gates: []sample.Gate{{Name: sample.Steal, Message: "stolen"}}})
	}
	r.Validity = model.Validity{Attempts: 353, Valid: 50, Gated: 300, Failed: 3}
	page := string(written(t, r))
	must.Equal(t, 200, strings.Count(page, "<td>stolen</td>"))
	contains(t, page, "103 attempts more: the report as JSON lists all.")
}

func TestMarksDistinguishVerdictsWithoutColour(t *testing.T) {
	p, adjusted, d := 0.0004, 0.012, 0.031
	for _, c := range []struct {
		verdict  model.Verdict
		adjusted *float64
		want     string
	}{
		{model.Differs, &adjusted, "≠ differs (p 0.012)"},
		{model.Differs, nil, "≠ differs (p < 0.001)"},
		{model.Suggested, &adjusted, "? suggested (not confirmed by the correction for many comparisons)"},
		{model.Alike, &adjusted, "~ no difference shows (detectable: 3.1 %)"},
		{model.TooNoisy, &adjusted, "! too noisy to judge"},
		{model.TooFew, nil, "… too few trials to tell"},
		{"", nil, ""},
	} {
		if got := markOf(c.verdict, &p, c.adjusted, &d).Text(); got != c.want {
			t.Errorf("%q reads %q, want %q", c.verdict, got, c.want)
		}
	}
}

func TestOnlyConfirmedDifferencesHaveATone(t *testing.T) {
	for v, want := range map[model.Verdict]string{model.Differs: "worse", model.Suggested: "", model.Alike: "", model.TooFew: ""} {
		if got := tables.Tone(sample.Throughput, v, -0.1); got != want {
			t.Errorf("less throughput that is %q has the tone %q, want %q", v, got, want)
		}
	}
	must.Equal(t, "better", tables.Tone(sample.SenderCPUPerByte, model.Differs, -0.1))
}

func TestWaterfallHasEveryStepOfEveryMetric(t *testing.T) {
	l := chartsOf(t, written(t, rigorous(t))).Ladders
	if len(l) != 1 || len(l[0].Metrics) != 3 {
		t.Fatalf("%d ladders, want 1 of 3 metrics", len(l))
	}
	m := l[0].Metrics[2]
	if m.Name != "receiver CPU per byte" || m.Unit != "ns/byte" || len(m.Rungs) != 4 {
		t.Fatalf("the third waterfall is %s in %s of %d rungs", m.Name, m.Unit, len(m.Rungs))
	}
	if b := m.Rungs[1]; b.Added == nil || b.Added.Text != "+0.030" || b.Added.Range != "" || b.Verdict.Word != "suggested" || b.Tone != "" || b.Share != "" {
		t.Errorf("the bridge's step is %+v (%+v)", b, b.Added)
	}
	if v := m.Rungs[2]; v.Verdict.Word != "differs" || v.Tone != "worse" || v.Share != "15 % of the whole" || !strings.HasPrefix(v.Ratio, "+18.2 %") {
		t.Errorf("the step of VXLAN is %+v", v)
	}
	if last := m.Rungs[3]; last.Figure != nil || last.Added != nil {
		t.Errorf("a scenario without figures has %+v", last)
	}
}

func TestTheChartHasEveryTrialWithItsState(t *testing.T) {
	c := chartsOf(t, written(t, rigorous(t))).Trials
	if c == nil || len(c.Rows) != 8 {
		t.Fatalf("the chart of trials has %v, want 8 scenarios that ran", c)
	}
	states := make(map[string]map[string]int)
	for _, row := range c.Rows {
		states[row.ID] = make(map[string]int)
		for i, s := range row.State {
			states[row.ID][s]++
			if (row.Why[i] == "") != (s == stateCounts) {
				t.Errorf("%s block %d is %s because %q", row.ID, row.Block[i], s, row.Why[i])
			}
		}
		for i := range row.Values {
			if len(row.Values[i]) != len(row.Block) {
				t.Errorf("%s has %d values of %s and %d trials", row.ID, len(row.Values[i]), c.Metrics[i].Name, len(row.Block))
			}
		}
	}
	// Block 1 was measured with the profiler as well, block 2 twice; block 5 is lost.
	if got := states["vxlan/stream"]; got[stateCounts] != 5 || got[stateGated] != 2 || got[stateProfiled] != 1 {
		t.Errorf("vxlan/stream is %v", got)
	}
	for _, row := range c.Rows {
		if row.ID == "bridge/stream" && (len(row.Failed) != 1 || !strings.HasPrefix(row.Failed[0], "block 4 failed: tool-hung")) {
			t.Errorf("the failed trials of bridge/stream are %q", row.Failed)
		}
	}
}
