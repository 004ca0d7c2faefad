package html

import (
	"strings"
	"testing"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// documented is the sample run with a document's table beside it.
func documented(t testing.TB) *model.Report {
	t.Helper()
	r := quick(t)
	ratio, iv := 0.5, *interval(0.79, 0.01)
	cell := func(row, scenario string, value float64, printed string) *model.PublishedCell {
		c := &model.PublishedCell{Published: suite.Published{Table: "t", Row: row, Column: "rate", Scenario: scenario,
			Metric: string(sample.Throughput), Value: value, Printed: printed, Unit: "Gbps", Factor: 1e9, Source: "the <document>"}}
		c.Measured = interval(11e9, 1e8)
		return c
	}
	first, second, third := cell("raw", "raw/stream", 2e9, "2 Gbps"), cell("vxlan", "vxlan/stream", 1e9, "1 Gbps"), cell("macvlan", "macvlan/stream", 1e9, "1.5 Gbps")
	second.Against, second.PublishedRatio, second.MeasuredRatio = "raw/stream", &ratio, &iv
	second.Agreement, second.Note = model.OtherMagnitude, "a <note>"
	third.Measured, third.Absent = nil, "skipped: this kernel has no macvlan"
	r.Tables = []model.PublishedTable{{
		Table:   suite.Table{Name: "t", Title: "streams & more", Source: "the <document>", Corner: "system"},
		Columns: []string{"rate", "CPU"},
		Rows: []model.PublishedRow{
			{Name: "raw", Cells: []*model.PublishedCell{first, nil}},
			{Name: "vxlan", Cells: []*model.PublishedCell{second, nil}},
			{Name: "macvlan", Cells: []*model.PublishedCell{third, nil}},
		},
	}}
	r.Run.Short = true
	return r
}

func TestThePageHasTheDocumentsFiguresTheMeasuredAndTheRatios(t *testing.T) {
	text := string(written(t, documented(t)))
	_, section, found := strings.Cut(text, `id="h-published-beside-measured"`)
	section, _, _ = strings.Cut(section, "</section>")
	if !found {
		t.Fatal("there is no section of documents")
	}
	for _, want := range []string{
		"Absolute figures belong to the hardware", "Streams &amp; more", "the &lt;document&gt;",
		`<td class="n ">2 Gbps</td>`, "11.0 Gbps<br><small>[10.9, 11.1]</small>", `<td class="n ">skipped<br><small>(this kernel has no macvlan)</small></td>`,
		`<th scope="row">vxlan</th>`, `<td class="n ">0.500</td>`, "0.790 [0.780, 0.800]", `<span class="verdict alike">± same direction, other magnitude</span>`, "a &lt;note&gt;",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("the section lacks %q:\n%s", want, section)
		}
	}
	if strings.Count(section, "<table") != 2 || strings.Count(section, "<tr>") != 1+3+1+3 {
		t.Errorf("%d tables and %d rows, want one of the document and one of the figures without a table", strings.Count(section, "<table"), strings.Count(section, "<tr>"))
	}
	if !strings.Contains(text, " · short form") {
		t.Error("the page does not say that the run was the short form")
	}
}

func TestThePageTellsHowToRepeatEveryScenarioByHand(t *testing.T) {
	text := string(written(t, quick(t)))
	if n := strings.Count(text, `<details class="byhand">`); n != 8 {
		t.Errorf("%d scenarios by hand, want the eight that ran", n)
	}
	for _, want := range []string{"windtunnel lab up quick --scenario raw/stream\n", "windtunnel lab exec quick b1 -- windtunnel ntttcp -r", "windtunnel lab down quick\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
