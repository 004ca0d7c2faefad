package published

import (
	"strings"
	"testing"

	"windtunnel/lab/report/figures"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestTheCPUOfASideIsNotComparedIfItsCPUsOrTheSendersAreFull(t *testing.T) {
	cell := func(sender, receiver float64) *figures.Cell { // nodes of one CPU, percent
		summary := make(map[sample.Metric]quantity.Interval)
		for m, v := range map[sample.Metric]float64{
			sample.SenderCPU: sender, sample.SenderCores: sender / 100,
			sample.ReceiverCPU: receiver, sample.ReceiverCores: receiver / 100,
		} {
			summary[m] = quantity.Interval{Median: v, Low: v, High: v, N: 6}
		}
		return &figures.Cell{Summary: summary}
	}
	for _, c := range []struct {
		metric        sample.Metric
		subject, base *figures.Cell
		want          string // beginning of the reason
	}{
		{sample.SenderCPU, cell(99, 60), cell(98, 60), "the sender's CPUs are full in both"},
		{sample.ReceiverCPU, cell(60, 99), cell(60, 98), "the receiver's CPUs are full in both"},
		{sample.ReceiverCPU, cell(99, 60), cell(98, 70), "the sender's CPUs are full in both scenarios, so the receiver's CPU depends"},
		{sample.ReceiverCPU, cell(99, 60), cell(70, 70), ""},
		{sample.SenderCPU, cell(60, 99), cell(70, 98), ""},
		{sample.Throughput, cell(99, 99), cell(99, 99), ""},
	} {
		b := &verdicts.Judge{Cells: map[string]*figures.Cell{"subject": c.subject, "base": c.base}}
		got := full(b, &model.PublishedCell{Published: suite.Published{Scenario: "subject", Metric: string(c.metric)}, Against: "base"})
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: the reason is %q, want %q", c.metric, got, c.want)
		}
	}
}
