package report_test

import (
	"bytes"
	"strings"
	"testing"

	"windtunnel/lab/report"
	"windtunnel/lab/report/html"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
)

func TestEveryFormOfTheReportSaysWhichFiguresAreOfEmulatedVMs(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	id := samples[0].Scenario
	for i := range samples {
		if samples[i].Scenario == id {
			samples[i].Warnings = append(samples[i].Warnings, sample.Emulated)
		}
	}
	r := report.Build(run, plan, samples)
	for i := range r.Scenarios {
		if s := r.Scenarios[i]; strings.HasSuffix(s.Title, "[emulated CPU]") != (s.ID == id) {
			t.Errorf("the title of %s is %q; %s was emulated", s.ID, s.Title, id)
		}
	}
	want := "Emulated CPU (TCG): VMs ran without KVM"
	for form, write := range map[string]func(*bytes.Buffer) error{
		"terminal": func(b *bytes.Buffer) error { return text.Write(b, report.Document(r), text.Options{}) },
		"Markdown": func(b *bytes.Buffer) error { return asMarkdown(b, r) },
		"HTML":     func(b *bytes.Buffer) error { return html.Write(b, r) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		if !strings.Contains(text, want) || !strings.Contains(text, id) {
			t.Errorf("%s does not say %q with %s", form, want, id)
		}
	}
}
