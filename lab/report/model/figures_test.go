package model_test

import (
	"strings"
	"testing"

	. "windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

func TestTableLeavesOutColumnsThatNoRowHas(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	for i := range samples {
		delete(samples[i].Metrics, sample.ReceiverCPU)
		delete(samples[i].Metrics, sample.Retransmits)
	}
	heads := func(r *Report) string {
		names := ""
		for _, f := range r.Figures() {
			for _, c := range f.Columns {
				names += c.Key + " "
			}
		}
		return names
	}
	if got := heads(Build(run, plan, samples)); strings.Contains(got, "receiver_cpu_percent") || strings.Contains(got, "retransmits") {
		t.Errorf("the columns are %s, want none without a figure", got)
	}
	if got := heads(quick(t)); !strings.Contains(got, "receiver_cpu_percent") || strings.Contains(got, "loss_ratio") || strings.Contains(got, "errors") {
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
		for _, c := range Build(run, plan, samples).Figures()[0].Columns {
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

func TestFiguresHaveThreeDigitsAndBoundsThatDiffer(t *testing.T) {
	for _, c := range []struct {
		metric      sample.Metric
		iv          Interval
		median, rng string
	}{
		{sample.Throughput, Interval{Median: 11.04e9, Low: 10.4e9, High: 11.1e9, N: 6}, "11.0", "[10.4, 11.1]"},
		{sample.Throughput, Interval{Median: 9.512e9, Low: 9.509e9, High: 9.516e9, N: 6}, "9.51", "[9.51, 9.52]"},
		{sample.Throughput, Interval{Median: 9.512e9, Low: 9.511e9, High: 9.513e9, N: 6}, "9.512", "[9.511, 9.513]"},
		{sample.Throughput, Interval{Median: 250e3, Low: 250e3, High: 250e3, N: 1}, "250", ""},
		{sample.SenderCPU, Interval{Median: 99.998, Low: 99.997, High: 100, N: 2}, "100", "[100, 100]"},
		{sample.SenderCPUPerByte, Interval{Median: 0.05678, Low: 0.05, High: 0.06, N: 6}, "0.0568", "[0.0500, 0.0600]"},
		{sample.LossRatio, Interval{Median: 0.0123, Low: 0.01, High: 0.02, N: 6}, "1.23", "[1.00, 2.00]"},
		{sample.Retransmits, Interval{Median: 123456, Low: 100000, High: 200000, N: 6}, "123,456", "[100,000, 200,000]"},
	} {
		median, rng := ScaleOf(c.metric, c.iv.Median).Figure(c.iv)
		if median != c.median || rng != c.rng {
			t.Errorf("%s of %v is %q %q, want %q %q", c.metric, c.iv.Median, median, rng, c.median, c.rng)
		}
	}
}

func TestLatenciesHaveTheUnitOfTheSmallestMedian(t *testing.T) {
	rows := []*Scenario{
		{Metrics: map[sample.Metric]Interval{sample.LatencyP50: {Median: 40e3, N: 1}}},
		{Metrics: map[sample.Metric]Interval{sample.LatencyP50: {Median: 3e6, N: 1}}},
	}
	if scale, ok := ScaleOfRows(rows, sample.LatencyP50); !ok || scale.Unit != "µs" {
		t.Errorf("medians of 40 µs and 3 ms have the unit %q, want µs", scale.Unit)
	}
}

func TestPrintPutsTheUnitWhereItBelongs(t *testing.T) {
	for _, c := range []struct {
		metric sample.Metric
		v      float64
		want   string
	}{
		{sample.Throughput, 9.996e9, "10.0 Gbit/s"}, {sample.Throughput, 0, "0 bit/s"}, {sample.Transactions, 830, "830/s"},
		{sample.Transactions, 27_400, "27.4 k/s"}, {sample.LatencyP50, 31_000, "31.0 µs"}, {sample.MSS, 1448, "1450 B"},
		{sample.SegmentsPerSKB, 22.5, "22.5"}, {"unknown", 1.5, "1.50"},
	} {
		if got := ScaleOf(c.metric, c.v).Print(c.v); got != c.want {
			t.Errorf("%s %v is %q, want %q", c.metric, c.v, got, c.want)
		}
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
	for _, f := range Build(run, plan, samples).Figures() {
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
