package tables

import (
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// bought is an amount of traffic that has a price.
type bought struct {
	metric sample.Metric
	amount float64
	words  string
}

var (
	bits     = bought{sample.Throughput, 1e12, "1,000 Gbit"}
	requests = bought{sample.Transactions, 1e6, "million requests"}
)

// Prices has the price of the traffic of each scenario: of the hours of its hosts that an amount takes at the measured
// rate. The section is empty if a host has no price.
func Prices(r *model.Report) document.Section {
	s := document.Section{Title: "Price of the traffic", Lead: "The price of the hours of the scenario's hosts that this traffic takes at the measured rate, by the prices of the hosts file. The hosts do nothing else."}
	for _, b := range []bought{bits, requests} {
		s.Tables = append(s.Tables, b.table(r).List()...)
	}
	return s
}

func (b bought) table(r *model.Report) (t document.Table) {
	for i := range r.Scenarios {
		sc := &r.Scenarios[i]
		iv := sc.Interval(b.metric)
		perHour, currency, known := rent(r.Run.Options.Hosts, sc)
		if !known || iv == nil || iv.Low <= 0 || sc.Workload.Kind.Exchange() != (b == requests) {
			continue
		}
		if t.Columns == nil {
			t.Columns = append(document.Words("scenario"), document.Column{Name: "per " + b.words, Unit: currency})
		}
		at := perHour / 3600 * b.amount // of a rate of 1/s
		median, bounds := quantity.Scale{Unit: currency, By: 1}.Figure(quantity.Interval{Median: at / iv.Median, Low: at / iv.High, High: at / iv.Low, N: iv.N})
		t.Rows = append(t.Rows, document.Row{Cells: []document.Cell{{Text: sc.ID}, {Text: median, Range: bounds}}})
	}
	return t
}

// rent returns the price of an hour of all hosts that a scenario uses. known is false if one has no price.
func rent(hosts []sample.Host, s *model.Scenario) (perHour float64, currency string, known bool) {
	used := 2
	if s.Placement == string(suite.Colocated) {
		used = 1
	}
	if len(hosts) < used {
		return 0, "", false
	}
	for _, h := range hosts[:used] {
		if h.Price.Currency == "" {
			return 0, "", false
		}
		perHour, currency = perHour+h.Price.PerHour, h.Price.Currency
	}
	return perHour, currency, true
}
