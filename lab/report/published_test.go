package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/published"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// documented returns the rigorous run with a document's table: a baseline, one figure
// of each kind, and a change that contradicts the figures.
func documented() (sample.Run, suite.Plan, []sample.Sample) {
	run, plan, samples := reporttest.Rigorous()
	plan.Tables = []suite.PublishedTable{{Name: "t", Title: "streams", Source: "the document, table 1", Corner: "system"}}
	cell := func(row, column, scenario string, m sample.Metric, value float64, printed, unit string, factor, step float64) suite.Published {
		return suite.Published{Table: "t", Row: row, Column: column, Scenario: scenario, Metric: string(m), Value: value, Printed: printed, Unit: unit, Factor: factor, Step: step, Source: "the document, table 1"}
	}
	plan.Published = []suite.Published{
		cell("raw", "rate", "raw/stream", sample.Throughput, 590*8e3, "590 KB/sec", "KB/sec", 8e3, 8e3),
		cell("vxlan", "rate", "vxlan/stream", sample.Throughput, 557*8e3, "557 KB/sec", "KB/sec", 8e3, 8e3),
		cell("bridge", "rate", "bridge/stream", sample.Throughput, 560*8e3, "560 KB/sec", "KB/sec", 8e3, 8e3),
		cell("macvlan", "rate", "macvlan/stream", sample.Throughput, 100*8e3, "100 KB/sec", "KB/sec", 8e3, 8e3),
		cell("other", "rate", "gone/stream", sample.Throughput, 100*8e3, "100 KB/sec", "KB/sec", 8e3, 8e3),
		cell("raw", "CPU", "raw/stream", sample.SenderCPU, 50, "50 %", "%", 1, 1),
		cell("colocated", "CPU", "bridge-colocated/stream", sample.SenderCPU, 60, "60 %", "%", 1, 1),
	}
	change := cell("vxlan", "change", "vxlan/stream", sample.Throughput, 0.84, "-16%", "", 0, 0.01)
	change.Baseline = "raw/stream"
	plan.Published = append(plan.Published, change,
		suite.Published{Table: "t", Row: "vxlan", Column: "price", Printed: "5", Note: "nothing here costs money", Source: "the document, table 1"})
	return run, plan, samples
}

func documentedReport(t *testing.T) (*model.Report, func(row, column string) *model.PublishedCell) {
	t.Helper()
	r := report.Build(documented())
	if len(r.Tables) != 1 {
		t.Fatalf("%d tables, want 1", len(r.Tables))
	}
	return r, func(row, column string) *model.PublishedCell {
		t.Helper()
		for _, line := range r.Tables[0].Rows {
			for _, c := range line.Cells {
				if c != nil && c.Row == row && c.Column == column {
					return c
				}
			}
		}
		t.Fatalf("no cell %s, %s", row, column)
		return nil
	}
}

func TestADocumentsTableKeepsItsShape(t *testing.T) {
	r, _ := documentedReport(t)
	table := r.Tables[0]
	must.Equal(t, "rate CPU change price", strings.Join(table.Columns, " "))
	var rows []string
	for _, row := range table.Rows {
		filled := ""
		for _, c := range row.Cells {
			filled += map[bool]string{true: "-", false: "x"}[c == nil]
		}
		rows = append(rows, row.Name+" "+filled)
	}
	must.Equal(t, "raw xx--, vxlan x-xx, bridge x---, macvlan x---, other x---, colocated -x--", strings.Join(rows, ", "))
	if len(r.Published) != 9 || len(published.WithoutTable(r)) != 0 {
		t.Errorf("%d figures, of which %d stand outside of tables; want 9 and 0", len(r.Published), len(published.WithoutTable(r)))
	}
}

func TestMeasuredFiguresHaveTheDocumentsUnitAndTheirRatios(t *testing.T) {
	r, cell := documentedReport(t)
	vxlan := cell("vxlan", "rate")
	bits := r.Scenarios[6].Throughput
	if r.Scenarios[6].ID != "vxlan/stream" || vxlan.Measured == nil || *vxlan.Measured != *bits {
		t.Fatalf("measured %+v, want %+v", vxlan.Measured, bits)
	}
	if got := published.MeasuredText(vxlan); got != fmt.Sprintf("%.0f0000 KB/sec", bits.Median/8e7) {
		t.Errorf("%v bit/s are printed as %q", bits.Median, got)
	}
	if vxlan.Against != "raw/stream" || math.Abs(*vxlan.PublishedRatio-557./590) > 1e-12 {
		t.Errorf("published ratio %v to %q", *vxlan.PublishedRatio, vxlan.Against)
	}
	if want := r.Ratio("vxlan/stream", sample.Throughput).Ratio; *vxlan.MeasuredRatio != want {
		t.Errorf("measured ratio %+v, the comparison has %+v", *vxlan.MeasuredRatio, want)
	}
	must.Equal(t, model.LargerChange, vxlan.Agreement)
	if raw := cell("raw", "rate"); raw.PublishedRatio != nil || raw.Agreement != "" || raw.Against != "" {
		t.Errorf("the baseline has a ratio itself: %+v", raw)
	}
	if b := cell("bridge", "rate"); b.Agreement != model.SameMagnitude {
		t.Errorf("a loss of 5 %% published and of 4 %% measured: %s (%s)", b.Agreement, b.Why)
	}
}

func TestAChangeThatTheDocumentsFiguresContradictIsNoted(t *testing.T) {
	r, cell := documentedReport(t)
	c := cell("vxlan", "change")
	must.Equal(t, "the document's own figures, 557 KB/sec and 590 KB/sec, give −5.6 % and not -16%", c.Doubt)
	if *c.PublishedRatio != 0.84 || c.MeasuredRatio == nil || c.Measured != nil || !strings.HasPrefix(published.MeasuredText(c), "−2") {
		t.Errorf("the change is %+v, printed as %q", c, published.MeasuredText(c))
	}
	found := false
	for _, line := range published.Notes(&r.Tables[0]) {
		found = found || strings.HasPrefix(line, "vxlan, change: the document's own figures")
	}
	if !found {
		t.Errorf("notes %q", published.Notes(&r.Tables[0]))
	}
}

func TestChangesThatFollowFromRoundedFiguresAreNotNoted(t *testing.T) {
	for _, c := range []struct {
		native, weave, step, change float64
		doubted                     bool
	}{
		{590, 557, 1, 0.84, true}, {12.5, 9.11, 0.01, 0.73, false}, {24.8, 10.3, 0.1, 0.42, false}, {48, 12, 1, 0.25, false},
		{310, 51, 1, 0.17, false}, {56.3, 17, 1, 0.31, false}, {117, 24.6, 0.1, 0.21, false}, {310, 51, 0.1, 0.17, true},
	} {
		run, plan, samples := documented()
		plan.Published[0].Value, plan.Published[0].Step = c.native, 1
		if c.native != math.Trunc(c.native) {
			plan.Published[0].Step = 0.1
		}
		plan.Published[1].Value, plan.Published[1].Step = c.weave, c.step
		plan.Published[7].Value = c.change
		r := report.Build(run, plan, samples)
		for _, row := range r.Tables[0].Rows {
			for _, cell := range row.Cells {
				if cell != nil && cell.Baseline != "" && (cell.Doubt != "") != c.doubted {
					t.Errorf("%v to %v as %v: doubt %q, want one: %v", c.native, c.weave, c.change, cell.Doubt, c.doubted)
				}
			}
		}
	}
}

// A figure that deviates from the document has the cause that the suite gives for its subject, baseline and metric, or
// a mark that none is known.
func TestADifferenceHasItsCauseOrAMark(t *testing.T) {
	build := func(causes ...suite.Cause) *model.Report {
		run, plan, samples := documented()
		plan.Published[2].Value = 295 * 8e3 // of the bridge: half of raw's, which it is not here
		plan.Causes = causes
		return report.Build(run, plan, samples)
	}
	rate, latency := []string{string(sample.Throughput)}, []string{string(sample.LatencyP50)}
	for _, c := range []struct {
		causes       []suite.Cause
		cell, claims string
	}{
		{nil, "> vxlan, rate; ≠ bridge, rate: cause not known.", "Cause not known."},
		{[]suite.Cause{{Subject: "vxlan/stream", Cause: "another"}, {Subject: "bridge/stream", Baseline: "vxlan/stream", Cause: "another"}, {Subject: "bridge/stream", Metrics: latency, Cause: "another"}}, "> vxlan, rate: another.\n≠ bridge, rate: cause not known.", "Cause not known."},
		{[]suite.Cause{{Subject: "bridge/stream", Baseline: "raw/stream", Metrics: rate, Cause: "it copies less."}, {Subject: "bridge/rr", Metrics: latency, Cause: "one more hop"}}, "> vxlan, rate: cause not known.\n≠ bridge, rate: it copies less.", "Cause: one more hop."},
	} {
		r := build(c.causes...)
		if got := strings.Join(published.Causes(&r.Tables[0]), "\n"); got != c.cell {
			t.Errorf("%+v: the table says %q, want %q", c.causes, got, c.cell)
		}
		for _, h := range r.Hypotheses {
			want := ""
			if h.Judgement == model.Refuted {
				want = c.claims
			}
			if got := h.CauseText(); got != want {
				t.Errorf("%+v: %s (%s): %q, want %q", c.causes, h.Claim, h.Judgement, got, want)
			}
		}
	}
}

// A figure has no verdict that depends on its ratio if the suite rules so, if VMs without KVM made
// it, or if it is the CPU time of a side that is full in both scenarios.
func TestFiguresThatSayNothingAboutTheDocumentAreNotJudged(t *testing.T) {
	run, plan, samples := documented()
	cpu := plan.Published[5]
	cpu.Row, cpu.Scenario = "vxlan", "vxlan/stream"
	plan.Published = append(plan.Published, cpu)
	plan.Causes = []suite.Cause{{Subject: "bridge/stream", Baseline: "raw/stream", Verdict: suite.ByConstruction, Cause: "the suite sets it"}, {Subject: "bridge/rr", Verdict: suite.NotHere, Cause: "no such NIC"}}
	for i := range samples {
		s := &samples[i]
		s.Metrics = maps.Clone(s.Metrics)
		switch {
		case s.Scenario == "vxlan/stream" && s.Metrics != nil: // 0.7 cores of the node and 0.3 of the wire, on one CPU
			s.Metrics[sample.SenderCPU], s.Metrics[sample.SenderCores], s.Metrics[sample.FabricCores], s.Metrics[sample.ReceiverFabricCores] = 70, 0.7, 0.5, 0.2
		case s.Scenario == "raw/stream" && s.Metrics != nil:
			s.Metrics[sample.SenderCPU], s.Metrics[sample.SenderCores], s.Metrics[sample.FabricCores], s.Metrics[sample.ReceiverFabricCores] = 50, 0.5, 0.7, 0.2
		case s.Scenario == "vxlan/rr":
			s.Warnings = []string{sample.Emulated}
		}
	}
	r := report.Build(run, plan, samples)
	got := map[string]*model.PublishedCell{}
	for _, c := range r.Tables[0].Cells() {
		got[c.Row+" "+c.Column] = c
	}
	for cell, want := range map[string]model.Agreement{"bridge rate": model.Constructed, "vxlan CPU": model.NotJudged, "vxlan rate": model.LargerChange} {
		c := got[cell]
		if c.Agreement != want || c.MeasuredRatio == nil || want != model.LargerChange && c.Cause == "" {
			t.Errorf("%s: %q (%s), want %q with a ratio and a reason", cell, c.Agreement, c.Cause, want)
		}
	}
	if lines := strings.Join(published.Causes(&r.Tables[0]), "\n"); !strings.Contains(lines, "≡ bridge, rate: the suite sets it.") || !strings.Contains(lines, "– vxlan, CPU: the sender's CPUs are full in both scenarios") {
		t.Errorf("the lines below the table lack a cause or a sign: %s", lines)
	}
	perByte, want := got["vxlan CPU per byte"], r.Ratio("vxlan/stream", sample.SenderCPUPerByte).Ratio
	if perByte == nil || math.Abs(*perByte.PublishedRatio-590./557) > 1e-12 || *perByte.MeasuredRatio != want {
		t.Errorf("CPU per byte: %+v, want the document's CPU ratio of 1 over 557/590, beside %+v", perByte, want)
	}
	rules := map[string]string{}
	for _, h := range r.Hypotheses {
		for _, id := range h.Subjects {
			rules[id] = string(h.Judgement) + ". " + h.CauseText()
		}
	}
	must.Equal(t, "cannot be judged here. Reason: no such NIC.", rules["bridge/rr"])
	for i := range samples {
		samples[i].Warnings = []string{sample.Emulated}
	}
	r = report.Build(run, plan, samples)
	for _, c := range r.Tables[0].Ratios() {
		if c.MeasuredRatio != nil && c.Scenario != "bridge/stream" && (c.Agreement != model.NotJudged || !strings.Contains(c.Cause, "emulated")) {
			t.Errorf("%s, %s between emulated guests: %q (%s)", c.Row, c.Column, c.Agreement, c.Cause)
		}
	}
	for _, h := range r.Hypotheses {
		if h.Judgement == model.Holds || h.Judgement == model.Refuted {
			t.Errorf("%s between emulated guests: %s", h.Claim, h.Judgement)
		}
	}
}

// The tally counts a figure once, though several tables or both ends of a stream have it.
func TestTheTallyCountsNoFigureTwice(t *testing.T) {
	run, plan, samples := documented()
	second := plan.Tables[0]
	second.Name, second.Title = "u", "again"
	plan.Tables = append(plan.Tables, second)
	for _, p := range plan.Published[:8] {
		p.Table = "u"
		plan.Published = append(plan.Published, p)
	}
	tally := func(p suite.Plan) string {
		d := must.Get(published.Document(report.Build(run, p, samples)))(t)
		return fmt.Sprint(d.Sections[0].Tables[0].Rows[0].Cells)
	}
	once := plan
	once.Tables, once.Published = plan.Tables[:1], plan.Published[:9]
	must.Equal(t, tally(once), tally(plan))
}

func TestClaimsThatTheDocumentDoesNotMakeAreApartAndDoNotCount(t *testing.T) {
	r, _ := documentedReport(t)
	r.Hypotheses = nil
	for _, claim := range []string{"a (the bound is ours)", "b (ours, not the document's)"} {
		r.Hypotheses = append(r.Hypotheses, model.Hypothesis{Hypothesis: suite.Hypothesis{Claim: claim}, Judgement: model.Holds})
	}
	d := must.Get(published.Document(r))(t)
	counts := d.Sections[0].Tables[0]
	for i, c := range counts.Columns {
		if c.Name == "conclusions: holds" {
			must.Equal(t, "1", counts.Rows[0].Cells[i].Text)
		}
	}
	var got []string
	for _, s := range d.Sections[1].Sections {
		for _, table := range s.Tables {
			for _, row := range table.Rows {
				if row.Cells[0].Text == string(model.Holds) {
					got = append(got, s.Title+": "+row.Cells[1].Text)
				}
			}
		}
	}
	must.Equal(t, []string{"Conclusions of the document: a (the bound is ours)", "Claims that are ours: b (ours, not the document's)"}, got)
}

func TestAPageStatesItsRevisionTheMemorysRateAndHowManyTrialsAreAdjusted(t *testing.T) {
	r, _ := documentedReport(t)
	for _, c := range []struct {
		revision string
		adjusted bool
		memory   *quantity.Interval
		want     string
	}{
		{"", false, nil, "revision not recorded. No figure is adjusted."},
		{"66153889", true, &quantity.Interval{Median: 28e9}, "revision 66153889. The figures hold for memory copied at 3.5 GB/s. The figures are adjusted to one CPU distance and no steal; 181 of 522 trials count only because of that."},
	} {
		r.Conditions.MemoryCopy, r.Run.Environment.Revision, r.Conditions.Adjusted, r.Validity.Valid, r.Validity.Warned = c.memory, c.revision, c.adjusted, 522, 181
		d := must.Get(published.Document(r))(t)
		if lead := d.Sections[1].Lead; !strings.HasSuffix(lead, c.want) {
			t.Errorf("the first paragraph is %q, want one that ends with %q", lead, c.want)
		}
	}
}

func TestAPageHasTheDocumentsTableInItsShape(t *testing.T) {
	r, cell := documentedReport(t)
	d := must.Get(published.Document(r))(t)
	table := d.Sections[1].Sections[0].Tables[0]
	var columns []string
	for _, c := range table.Columns {
		columns = append(columns, c.Name)
	}
	must.Equal(t, "system|rate|CPU|change|price", strings.Join(columns, "|"))
	vxlan := table.Rows[1]
	want := []string{"vxlan", "557 KB/sec (" + published.MeasuredText(cell("vxlan", "rate")) + ") >", "", "-16% (" + published.MeasuredText(cell("vxlan", "change")) + ") =", "5 (–)"}
	for i, c := range vxlan.Cells {
		if c.String() != want[i] {
			t.Errorf("cell %d of the row vxlan is %q, want %q", i, c.String(), want[i])
		}
	}
}

func TestCellsWithoutAMeasuredFigureHaveTheReason(t *testing.T) {
	_, cell := documentedReport(t)
	for place, want := range map[[2]string]string{
		{"macvlan", "rate"}: "skipped: ", {"other", "rate"}: "not in this run", {"vxlan", "price"}: "nothing here costs money",
	} {
		c := cell(place[0], place[1])
		if !strings.HasPrefix(published.MeasuredText(c), want) || c.Measured != nil || c.MeasuredRatio != nil || c.Agreement != "" {
			t.Errorf("%v: %q, agreement %q; want %q", place, published.MeasuredText(c), c.Agreement, want)
		}
	}
	if c := cell("colocated", "CPU"); c.Measured == nil || c.MeasuredRatio != nil || c.PublishedRatio != nil || !strings.Contains(published.Verdict(c), "both endpoints are on one node") {
		t.Errorf("the CPU of one node over that of two: %+v (%s)", c.MeasuredRatio, published.Verdict(c))
	}
	run, plan, samples := documented()
	plan.Published[7].Baseline = "macvlan/stream"
	must.Equal(t, "cannot be judged here", published.Verdict(report.Build(run, plan, samples).Tables[0].Rows[1].Cells[2]))
	if got := strings.Join(published.Causes(&report.Build(run, plan, samples).Tables[0]), "\n"); !strings.Contains(got, "– vxlan, change: this kernel has no macvlan") {
		t.Errorf("the reason is missing: %q", got)
	}
	plan.Short = true
	r := report.Build(run, plan, samples)
	must.Equal(t, "not in the short form", published.MeasuredText(r.Tables[0].Rows[4].Cells[0]))
	if !strings.Contains(strings.Join(r.Notes, "\n"), "the short form of the suite") || !strings.HasPrefix(report.Repeat(r)[0], "windtunnel run quick --short --seed ") {
		t.Errorf("the report does not mention the short form: %q, %q", r.Notes, report.Repeat(r))
	}
}

func TestTheJSONHasTheDocumentsTables(t *testing.T) {
	r, _ := documentedReport(t)
	var b bytes.Buffer
	must.Succeed(t, export.WriteJSON(&b, r))
	var read struct {
		Tables []model.PublishedTable `json:"published_tables"`
	}
	if err := json.Unmarshal(b.Bytes(), &read); err != nil || len(read.Tables) != 1 || read.Tables[0].Rows[1].Cells[0].Agreement == "" {
		t.Errorf("JSON has %+v (%v)", read.Tables, err)
	}
}

func TestPublishedRatioIsToThePublishedBaseline(t *testing.T) {
	list := published.WithoutTable(reporttest.Quick())
	if len(list) != 3 {
		t.Fatalf("%d figures, want 3", len(list))
	}
	v := list[1]
	if v.Against != "raw/stream" || v.PublishedRatio == nil || v.MeasuredRatio == nil {
		t.Fatalf("vxlan/stream: %+v", v)
	}
	if got := *v.PublishedRatio; got < 0.2159 || got > 0.2160 {
		t.Errorf("1592.691 of 7375.159 is %v", got)
	}
	if list[0].PublishedRatio != nil || list[2].MeasuredRatio != nil {
		t.Error("a baseline has a ratio to itself")
	}
}
