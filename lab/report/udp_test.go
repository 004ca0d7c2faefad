package report

import (
	"slices"
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Sent, delivered, lost in the socket and lost on the way stand side by side.
func TestTheTableOfDatagramsShowsWhereTheyWent(t *testing.T) {
	run, plan := twoSystems()
	plan.Scenarios[0].Workload.Kind = suite.UDPStream
	samples := []sample.Sample{{Scenario: "a/stream", Metrics: sample.Metrics{
		sample.DatagramsSent: 1000, sample.DatagramsReceived: 600, sample.LossRatio: 0.4, sample.SocketLoss: 0.3, sample.PathLoss: 0.1,
	}}}
	f := Build(run, plan, samples).Figures()[0]
	for metric, want := range map[sample.Metric]string{
		sample.DatagramsSent: "1.00", sample.DatagramsReceived: "600", sample.LossRatio: "40.0", sample.SocketLoss: "30.0", sample.PathLoss: "10.0",
	} {
		i := slices.IndexFunc(f.Columns, func(c Column) bool { return c.Key == string(metric) })
		if i < 0 {
			t.Errorf("no column %s", metric)
			continue
		}
		if got := f.Columns[i].Cells[0].Text; got != want {
			t.Errorf("%s: %q %s, want %q", metric, got, f.Columns[i].Unit, want)
		}
	}
}
