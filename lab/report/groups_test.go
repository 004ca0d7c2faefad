package report_test

import (
	"strings"
	"testing"

	"windtunnel/lab/report"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestTheReportShowsTheCPUOfControlGroups(t *testing.T) {
	plan := suite.Plan{Suite: "s", Nodes: 2, Trials: 2, Scenarios: []suite.Scenario{{ID: "cni/stream"}, {ID: "cni-colocated/stream"}}}
	var samples []sample.Sample
	for block, cores := range []float64{0.01, 0.03} {
		samples = append(samples,
			sample.Sample{Scenario: "cni/stream", Block: block, Metrics: sample.Metrics{
				sample.Throughput: 1e9, sample.GroupCores("sender", "kube-proxy"): cores, sample.GroupCores("receiver", "kube-proxy"): 0.5, sample.GroupCores("receiver", "other pods"): 0}},
			sample.Sample{Scenario: "cni-colocated/stream", Block: block, Metrics: sample.Metrics{sample.Throughput: 1e9, sample.GroupCores("sender", "kube-proxy"): 1.25}})
	}
	r := report.Build(sample.Run{Status: sample.Complete}, plan, samples)
	list := report.Matrices(r)
	if len(list) != 1 || list[0].Title != "CPU of control groups, in % of a CPU" {
		t.Fatalf("matrices %+v", list)
	}
	want := "cni/stream | 2.00 | 50.0 | 0\n" +
		"cni-colocated/stream | 125 | none | none"
	var columns []string
	for _, c := range list[0].Tables[0].Columns {
		columns = append(columns, c.Name)
	}
	if got := strings.Join(rows(list[0]), "\n"); got != want || strings.Join(columns, " | ") != "scenario | kube-proxy at the sender | kube-proxy at the receiver | other pods at the receiver" {
		t.Errorf("the matrix is\n%s\nwant\n%s", got, want)
	}
	if about := strings.Join(list[0].Notes, "\n"); strings.Contains(about, "control plane") {
		t.Errorf("without a figure of the control plane, the notes are\n%s", about)
	}
	samples[0].Metrics.Set(sample.GroupCores("sender", sample.ControlPlane), 0.1)
	if about := strings.Join(report.Matrices(report.Build(sample.Run{}, plan, samples))[0].Notes, "\n"); !strings.Contains(about, "The control plane is metered by process") {
		t.Errorf("the notes say nothing of the control plane:\n%s", about)
	}
	if len(report.Matrices(report.Build(sample.Run{}, plan, samples[:0]))) > 0 {
		t.Error("a run without control groups has a matrix of them")
	}
}
