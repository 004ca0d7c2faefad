package report_test

import (
	"fmt"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// At 10 Gbit/s, 1,000 Gbit take 100 s. Two hosts for 0.18 USD an hour each cost 0.01 USD in this time.
func TestThePriceOfTrafficFollowsFromThePricesOfItsHosts(t *testing.T) {
	price := sample.Price{PerHour: 0.18, Currency: "USD"}
	samples := []sample.Sample{atDistance(0, 60, 8e9), atDistance(1, 60, 10e9), atDistance(2, 60, 12.5e9)}
	for _, test := range []struct {
		hosts     []sample.Host
		placement string
		want      string
	}{
		{[]sample.Host{{Price: price}, {Price: price}}, "", "0.0100 [0.0080, 0.0125]"},
		{[]sample.Host{{Price: price}, {Price: price}}, "colocated", "0.00500 [0.00400, 0.00625]"},
		{[]sample.Host{{Price: price}, {}}, "", ""},
		{nil, "", ""},
	} {
		r := report.Build(sample.Run{Options: sample.Options{Hosts: test.hosts}}, oneScenario(), samples)
		r.Scenarios[0].Placement = test.placement
		got := ""
		for _, table := range tables.Prices(r).Tables {
			must.Equal(t, "per 1,000 Gbit USD", table.Columns[1].Name+" "+table.Columns[1].Unit)
			got += table.Rows[0].Cells[1].String()
		}
		must.Equal(t, test.want, got)
	}
}

// In a run between every pair of hosts, the price of a scenario is that of its own two hosts.
func TestThePriceOfAPairIsThatOfItsHosts(t *testing.T) {
	var r model.Report
	for i, name := range []string{"a", "b", "c"} {
		r.Run.Options.Hosts = append(r.Run.Options.Hosts, sample.Host{Name: name, Price: sample.Price{PerHour: 0.36 * float64(i), Currency: "USD"}})
	}
	for _, p := range []suite.HostPair{{From: "a", To: "b"}, {From: "c", To: "b"}} {
		r.Scenarios = append(r.Scenarios, model.Scenario{
			ID: suite.PairID("raw/stream", p), Workload: suite.Workload{Kind: suite.TCPStream},
			Throughput: &quantity.Interval{Median: 10e9, Low: 10e9, High: 10e9, N: 6},
		})
	}
	// At 10,000 requests a second, a million take 100 s too.
	r.Scenarios = append(r.Scenarios, model.Scenario{
		ID: suite.PairID("raw/rr", suite.HostPair{From: "a", To: "c"}), Workload: suite.Workload{Kind: suite.TCPRR},
		Transactions: &quantity.Interval{Median: 1e4, Low: 1e4, High: 1e4, N: 6},
	})
	var got []string
	for _, table := range tables.Prices(&r).Tables {
		for _, row := range table.Rows {
			got = append(got, row.Cells[0].Text+": "+row.Cells[1].Text)
		}
	}
	must.Equal(t, []string{"raw/stream a→b: 0.0100", "raw/stream c→b: 0.0300", "raw/rr a→c: 0.0200"}, got)
}

func TestAReportHasPricesAndZonesOfItsHosts(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	for i, zone := range []string{"eu-1a", "eu-1b"} {
		run.Options.Hosts = append(run.Options.Hosts, sample.Host{Name: fmt.Sprintf("h%d", i+1), Zone: zone, Price: sample.Price{PerHour: 1.5, Currency: "EUR"}})
	}
	r := report.Build(run, plan, samples)
	var printed strings.Builder
	must.Succeed(t, text.Write(&printed, report.Document(r), text.Options{Width: 100}))
	for _, want := range []string{"Price of the traffic", "per 1,000\n", "Gbit EUR\n", "per million\n", "requests EUR\n"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("no %q in:\n%s", want, &printed)
		}
	}
	for _, f := range report.Facts(r) {
		if f.Name == "Zones of the hosts" {
			must.Equal(t, "h1: eu-1a, h2: eu-1b", f.Text)
			return
		}
	}
	t.Error("the environment has no zones")
}
