package report_test

import (
	"slices"
	"strings"
	"testing"

	"windtunnel/lab/report"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// The table must have columns for datagrams sent, received, lost in the socket and lost
// on the path.
func TestTheTableOfDatagramsShowsWhereTheyWent(t *testing.T) {
	run, plan := twoSystems()
	plan.Scenarios[0].Workload.Kind = suite.UDPStream
	samples := []sample.Sample{{Scenario: "a/stream", Metrics: sample.Metrics{
		sample.DatagramsSent: 1000, sample.DatagramsReceived: 600, sample.LossRatio: 0.4, sample.SocketLoss: 0.3, sample.PathLoss: 0.1,
	}}}
	f := tables.Of(report.Build(run, plan, samples))[0]
	for metric, want := range map[sample.Metric]string{
		sample.DatagramsSent: "1.00", sample.DatagramsReceived: "600", sample.LossRatio: "40.0", sample.SocketLoss: "30.0", sample.PathLoss: "10.0",
	} {
		i := slices.IndexFunc(f.Columns, func(c tables.Column) bool { return c.Key == string(metric) })
		if i < 0 {
			t.Errorf("the table has no column %s", metric)
			continue
		}
		if got := f.Columns[i].Cells[0].Text; got != want {
			t.Errorf("%s: %q %s, want %q", metric, got, f.Columns[i].Unit, want)
		}
	}
}

// At 100 columns the report shows the datagrams sent and received, both kinds of
// loss, and the limit.
func TestATerminalOf100ColumnsShowsDatagramsAndLimits(t *testing.T) {
	run, plan := twoSystems()
	var samples []sample.Sample
	for i := range plan.Scenarios {
		plan.Scenarios[i].Workload.Kind = suite.UDPStream
		for block := range 8 {
			samples = append(samples, sample.Sample{Scenario: plan.Scenarios[i].ID, Block: block, Limit: sample.ReceiverLimit, Metrics: sample.Metrics{
				sample.Throughput: 3.21e9, sample.SenderCPU: 99, sample.ReceiverCPU: 98, sample.SenderCPUPerByte: 0.31, sample.ReceiverCPUPerByte: 0.42, sample.Capacity: 5.1e9,
				sample.DatagramsSent: 432e3, sample.DatagramsReceived: 287e3, sample.LossRatio: 0.336, sample.SocketLoss: 0.314, sample.PathLoss: 0.0223,
			}})
		}
	}
	text := tabled(t, report.Build(run, plan, samples), text.Options{Width: 100})
	for _, want := range []string{"432", "287", "33.6", "31.4", "2.23", "limited by"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}
