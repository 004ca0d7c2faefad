package report_test

import (
	"strings"
	"testing"

	"windtunnel/lab/report"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

func TestTheReportSaysWhichFiguresAreOfEmulatedVMs(t *testing.T) {
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
	expectNote(t, r, "Emulated CPU (TCG): VMs ran without KVM")
	expectNote(t, r, ": "+id+". Compare them with each other only.")
}
