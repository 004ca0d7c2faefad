package tables

import (
	"slices"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// bought is an amount of traffic for which the report has a price.
type bought struct {
	metric sample.Metric
	amount float64
	words  string
}

var (
	bits     = bought{sample.Throughput, 1e12, "1,000 Gbit"}
	requests = bought{sample.Transactions, 1e6, "million requests"}
)

// Prices says for each scenario what a certain amount of traffic costs: the time that it takes at the measured rate, times
// the price of the scenario's hosts. Scenarios with a host without a price are left out.
func Prices(r *model.Report) document.Section {
	s := document.Section{Title: "Price of the traffic", Lead: "The time that this traffic takes at the measured rate, times the price per hour of the scenario's hosts (hosts file). It assumes that the hosts do nothing else."}
	for _, b := range []bought{bits, requests} {
		s.Tables = append(s.Tables, b.table(r).List()...)
	}
	return s
}

func (b bought) table(r *model.Report) (t document.Table) {
	for i := range r.Scenarios {
		sc := &r.Scenarios[i]
		iv := sc.Interval(b.metric)
		perHour, currency, known := rent(hostsOf(r.Run.Options.Hosts, sc))
		if !known || iv == nil || iv.Low <= 0 || sc.Workload.Kind.Exchange() != (b == requests) {
			continue
		}
		if t.Columns == nil {
			t.Columns = append(document.Words("scenario"), document.Column{Name: "per " + b.words, Unit: currency})
		}
		at := perHour / 3600 * b.amount // price at a rate of 1 per second
		median, bounds := quantity.Scale{Unit: currency, By: 1}.Figure(quantity.Interval{Median: at / iv.Median, Low: at / iv.High, High: at / iv.Low, N: iv.N})
		t.Rows = append(t.Rows, document.Row{Cells: []document.Cell{{Text: sc.ID}, {Text: median, Range: bounds}}})
	}
	return t
}

// hostsOf returns the hosts that a scenario uses. In a run between every pair of hosts, the scenario's ID names them. In
// other runs they are the first two hosts, or the first one if both ends are on one node.
func hostsOf(hosts []sample.Host, s *model.Scenario) []sample.Host {
	if _, pair, ok := suite.SplitPairID(s.ID); ok {
		return slices.DeleteFunc(slices.Clone(hosts), func(h sample.Host) bool { return h.Name != pair.From && h.Name != pair.To })
	}
	if s.Placement == string(suite.Colocated) {
		return hosts[:min(1, len(hosts))]
	}
	return hosts[:min(2, len(hosts))]
}

// rent returns the sum of the prices per hour of hosts. known is false if one of them has no price.
func rent(hosts []sample.Host) (perHour float64, currency string, known bool) {
	for _, h := range hosts {
		if h.Price.Currency == "" {
			return 0, "", false
		}
		perHour, currency = perHour+h.Price.PerHour, h.Price.Currency
	}
	return perHour, currency, len(hosts) > 0
}
