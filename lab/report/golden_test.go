// Package report_test compares complete reports with golden files.
package report_test

import (
	"bytes"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/markdown"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/published"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

var update = flag.Bool("update", false, "write the current reports to testdata/*.golden")

func table(o text.Options) func(io.Writer, *model.Report) error {
	return func(w io.Writer, r *model.Report) error { return text.Write(w, report.Document(r), o) }
}

func explanation(w io.Writer, r *model.Report) error {
	return text.Write(w, report.Explain(r), text.Options{Width: 100})
}

func publishedPage(w io.Writer, r *model.Report) error {
	d, err := published.Document(r, r)
	if err != nil {
		return err
	}
	return markdown.Write(w, d)
}

// beside writes the section of the published figures, and its sentences.
func beside(w io.Writer, r *model.Report) error {
	said := document.Section{Title: "Findings", Sentences: published.Findings(r)}
	return text.Write(w, document.Document{Sections: []document.Section{published.Section(r), said}}, text.Options{Width: 140})
}

// withDocument is the rigorous run beside a table of a document, with the CPU figures of a
// tool.
func withDocument() *model.Report {
	run, plan, samples := reporttest.Rigorous()
	plan.Tables = []suite.PublishedTable{{Name: "t", Title: "streams on sender nodes", Source: "The document, table 1", Corner: "Metric", Note: "Two nodes."}}
	cell := func(row, column, scenario string, m sample.Metric, value float64, printed, unit string, factor float64) suite.Published {
		return suite.Published{Table: "t", Row: row, Column: column, Scenario: scenario, Metric: string(m), Value: value, Printed: printed, Unit: unit, Factor: factor}
	}
	plan.Published = []suite.Published{
		cell("Throughput", "A", "raw/stream", sample.Throughput, 7375.159e6, "7375.159 Mbit/s", "Mbit/s", 1e6),
		cell("Throughput", "B", "vxlan/stream", sample.Throughput, 1592.691e6, "1592.691 Mbit/s", "Mbit/s", 1e6),
		cell("Avg. CPU %", "A", "raw/stream", sample.SenderCPU, 14.799, "14.799 %", "%", 1),
		cell("Avg. CPU %", "B", "vxlan/stream", sample.SenderCPU, 15.843, "15.843 %", "%", 1),
		{Table: "t", Row: "Errors", Column: "A", Printed: "0", Note: "no scenario counts them"},
	}
	plan.Hypotheses = append(plan.Hypotheses, suite.Hypothesis{Claim: "VXLAN fills a link of 10 Gbit/s", Metric: string(sample.Throughput), Subjects: []string{"vxlan/stream"}, Low: 9e9, High: math.MaxFloat64, Printed: ">= 9 Gbps"})
	for i := range samples {
		if cpu, ok := samples[i].Metrics[sample.SenderCPU]; ok {
			samples[i].Metrics[sample.ToolSenderCPU] = cpu/2 + 30
		}
	}
	return report.Build(run, plan, samples)
}

func TestAPageAboutDocumentsNeedsTables(t *testing.T) {
	r := reporttest.Quick()
	must.Fail(t, publishedPage(io.Discard, r), r.Run.ID, "has no table of a document")
}

func TestReportsAreTheGoldenOnes(t *testing.T) {
	quick := reporttest.Quick()
	run, plan, samples := reporttest.Sized(2)
	plan.Comparisons, plan.Published = nil, nil
	for _, c := range []struct {
		name  string
		of    *model.Report
		write func(io.Writer, *model.Report) error
	}{
		{"table-140", quick, table(text.Options{Width: 140})},
		{"table-80", quick, table(text.Options{Width: 80})},
		{"table-colour", quick, table(text.Options{Width: 110, Colour: true})},
		{"table-two-trials", report.Build(run, plan, samples), table(text.Options{Width: 100})},
		{"markdown", quick, asMarkdown},
		{"explain", report.Build(reporttest.Rigorous()), explanation},
		{"published", withDocument(), publishedPage},
		{"beside", report.Build(documented()), beside},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got bytes.Buffer
			must.Succeed(t, c.write(&got, c.of))
			file := filepath.Join("testdata", c.name+".golden")
			if *update {
				must.Succeed(t, os.WriteFile(file, got.Bytes(), 0o644))
				return
			}
			want := must.Get(os.ReadFile(file))(t)
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("the report differs from %s; if the change is right, update the file with go test -update:\n%s", file, diff)
			}
		})
	}
}

// The name and the note of a run stand in every form that readers see.
func TestTheReportHasTheNameAndTheNoteOfTheRun(t *testing.T) {
	run, plan, samples := reporttest.Sized(1)
	run.Name, run.Note = "fix/mtu", "after the update"
	r := report.Build(run, plan, samples)
	for form, write := range map[string]func(io.Writer, *model.Report) error{"table": table(text.Options{}), "Markdown": asMarkdown, "HTML": asPage, "JSON": export.WriteJSON} {
		var b bytes.Buffer
		must.Succeed(t, write(&b, r))
		for _, want := range []string{run.Name, run.Note} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: lacks %q", form, want)
			}
		}
	}
}
