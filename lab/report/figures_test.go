package report_test

import (
	"strings"
	"testing"

	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/sample"
)

func TestTableLeavesOutColumnsThatNoRowHas(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	for i := range samples {
		delete(samples[i].Metrics, sample.ReceiverCPU)
		delete(samples[i].Metrics, sample.Retransmits)
	}
	heads := func(r *model.Report) string {
		names := ""
		for _, f := range tables.Of(r) {
			for _, c := range f.Columns {
				names += c.Key + " "
			}
		}
		return names
	}
	if got := heads(report.Build(run, plan, samples)); strings.Contains(got, "receiver_cpu_percent") || strings.Contains(got, "retransmits") {
		t.Errorf("the columns are %s, want none without a figure", got)
	}
	if got := heads(reporttest.Quick()); !strings.Contains(got, "receiver_cpu_percent") || strings.Contains(got, "loss_ratio") || strings.Contains(got, "errors") {
		t.Errorf("the columns of the sample run are %s, want receiver_cpu_percent, and no loss_ratio or errors", got)
	}
}

// Failover and the host's share have columns only where the run has a scenario of them.
func TestColumnsOfFailoverAndOfTheHostsShare(t *testing.T) {
	for _, with := range []bool{false, true} {
		run, plan, samples := reporttest.Sample()
		for i := range samples {
			if !samples[i].OK() {
				continue
			}
			samples[i].Metrics.Set(sample.Interruption, 8e7)
			samples[i].Metrics.Set(sample.HostShare, 0.25)
		}
		for i := range plan.Scenarios {
			if with {
				plan.Scenarios[i].Fabric.Cut, plan.Scenarios[i].Endpoint.HostVNIC = 1, true
			}
		}
		cells := map[string]string{}
		for _, c := range tables.Of(report.Build(run, plan, samples))[0].Columns {
			cells[c.Key] = c.Cells[0].Text + " " + c.Unit
		}
		want := map[string]string{}
		if with {
			want = map[string]string{"interruption_ns": "80.0 ms", "host_share_ratio": "25.0 %"}
		}
		for _, key := range []string{"interruption_ns", "host_share_ratio"} {
			if cells[key] != want[key] {
				t.Errorf("with such scenarios %v: %s is %q, want %q", with, key, cells[key], want[key])
			}
		}
	}
}

func TestLatenciesHaveTheUnitOfTheSmallestMedian(t *testing.T) {
	rows := []*model.Scenario{
		{Metrics: map[sample.Metric]quantity.Interval{sample.LatencyP50: {Median: 40e3, N: 1}}},
		{Metrics: map[sample.Metric]quantity.Interval{sample.LatencyP50: {Median: 3e6, N: 1}}},
	}
	if scale, ok := tables.ScaleOfRows(rows, sample.LatencyP50); !ok || scale.Unit != "µs" {
		t.Errorf("medians of 40 µs and 3 ms have the unit %q, want µs", scale.Unit)
	}
}

// NTttcp's average frame size of both ends is a column of streams, in bytes.
func TestTheFrameSizesOfATrafficToolAreColumns(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	for i := range samples {
		if samples[i].OK() {
			samples[i].Metrics[sample.ToolSenderFrame], samples[i].Metrics[sample.ToolReceiverFrame] = 1390, 1391
		}
	}
	for _, f := range tables.Of(report.Build(run, plan, samples)) {
		found := ""
		for _, c := range f.Columns {
			if c.Key == string(sample.ToolSenderFrame) || c.Key == string(sample.ToolReceiverFrame) {
				found += c.Name + " in " + c.Unit + ": " + c.Cells[0].Text + "; "
			}
		}
		want := "sender frame size by the tool in B: 1390; receiver frame size by the tool in B: 1390; "
		if f.Exchange {
			want = ""
		}
		if found != want {
			t.Errorf("%s: %q, want %q", f.Title, found, want)
		}
	}
}
