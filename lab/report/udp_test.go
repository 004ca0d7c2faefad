package report_test

import (
	"slices"
	"testing"

	"windtunnel/lab/report"
	"windtunnel/lab/report/tables"
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
