package report

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Figures is one table of a report, of scenarios that have the same columns:
// streams, or request/response. Every rendering shows these tables.
type Figures struct {
	// Title says what the rows have in common: "stream: TCP stream of 128 KiB".
	Title string
	// Exchange: request/response. Otherwise the rows are streams.
	Exchange bool
	Rows     []*Scenario
	// Names are the rows' names within the table: the scenario's id, or its
	// group where every row has the same workload.
	Names   []string
	Columns []Column
}

// Column is one quantity of every row.
type Column struct {
	Key  string // what it is, for programs; a sample.Metric where it is one
	Name string // for people, without the unit
	Unit string // empty for a bare count or ratio
	// Text: the cells are words, not figures.
	Text bool
	// Rank says what may be left out first where there is little room; 0
	// stays always.
	Rank  int
	Cells []Cell // one a row
}

// Cell is one figure as a person reads it, in the column's unit. The zero
// Cell is a figure that was not measured.
type Cell struct {
	Text string // the figure, or words
	// Range is the interval, "[10.6, 11.0]"; empty where there is none.
	Range string
	// Alike: a ratio in which no difference shows, from trials enough to say
	// so; one of Detectable would have. Suggested: a difference that does not
	// pass the correction for many comparisons.
	Alike, Suggested bool
	Detectable       *float64 // 0.03: a ratio of 1.03
	// Value is the figure in the metric's SI unit, where Has.
	Value float64
	Has   bool
}

// Figures lists the tables of the report: streams first, then
// request/response. Columns that no row has are left out.
func (r *Report) Figures() []Figures {
	var tables []Figures
	for _, exchange := range []bool{false, true} {
		var rows []*Scenario
		for i := range r.Scenarios {
			if isExchange(r.Scenarios[i].Workload.Kind) == exchange {
				rows = append(rows, &r.Scenarios[i])
			}
		}
		if len(rows) > 0 {
			tables = append(tables, r.table(rows, exchange))
		}
	}
	return tables
}

func (r *Report) table(rows []*Scenario, exchange bool) Figures {
	f := Figures{Exchange: exchange, Rows: rows}
	f.Title, f.Names = heading(rows, exchange)
	columns := r.streamColumns
	if exchange {
		columns = r.exchangeColumns
	}
	measured := func(c Cell) bool { return c.Text != "" }
	for _, c := range columns(rows) {
		if slices.ContainsFunc(c.Cells, measured) {
			f.Columns = append(f.Columns, c)
		}
	}
	return f
}

func isExchange(k suite.Kind) bool {
	return k == suite.TCPRR || k == suite.TCPCRR || k == suite.UDPRR
}

// heading names the table and its rows. Where all have one workload, the title
// says it once.
func heading(rows []*Scenario, exchange bool) (title string, names []string) {
	shared := true
	groups := make(map[string]bool)
	for _, s := range rows {
		group, rest, cut := strings.Cut(s.ID, "/")
		shared = shared && cut && rest == s.Workload.Name && s.Workload == rows[0].Workload && !groups[group]
		groups[group] = true
	}
	for _, s := range rows {
		if shared {
			names = append(names, groupOf(s.ID))
		} else {
			names = append(names, s.ID)
		}
	}
	switch {
	case shared:
		w := rows[0].Workload
		return w.Name + ": " + w.String(), names
	case exchange:
		return "request/response", names
	}
	return "streams", names
}

func (r *Report) streamColumns(rows []*Scenario) []Column {
	m := func(metric sample.Metric) func(*Scenario) *Interval {
		return func(s *Scenario) *Interval { return s.Interval(metric) }
	}
	columns := []Column{quantity(sample.Throughput, "throughput", 0, rows, m(sample.Throughput))}
	columns = append(columns, r.ratioColumns(rows, sample.Throughput)...)
	capacityRatio := r.ratioColumns(rows, sample.Capacity)[0]
	capacityRatio.Key, capacityRatio.Name, capacityRatio.Rank = "capacity_ratio", "ratio of capacity", 5
	return append(columns,
		quantity(sample.Capacity, "capacity", 4, rows, m(sample.Capacity)),
		capacityRatio,
		limits(rows),
		quantity(sample.SenderCPU, "sender CPU", 1, rows, m(sample.SenderCPU)),
		quantity(sample.ReceiverCPU, "receiver CPU", 1, rows, m(sample.ReceiverCPU)),
		quantity(sample.SenderCPUPerByte, "sender CPU", 3, rows, m(sample.SenderCPUPerByte)),
		quantity(sample.ReceiverCPUPerByte, "receiver CPU", 3, rows, m(sample.ReceiverCPUPerByte)),
		quantity(sample.DatagramsSent, "datagrams sent", 3, rows, m(sample.DatagramsSent)),
		quantity(sample.DatagramsReceived, "datagrams received", 2, rows, m(sample.DatagramsReceived)),
		quantity(sample.LossRatio, "loss", 1, rows, m(sample.LossRatio)),
		quantity(sample.SocketLoss, "loss in the socket", 2, rows, m(sample.SocketLoss)),
		quantity(sample.PathLoss, "loss on the way", 2, rows, m(sample.PathLoss)),
		counted(sample.Retransmits, "retransmits", 4, rows, func(s *Scenario) *float64 { return s.Retransmits }),
		failedCalls(rows),
		trials(rows),
	)
}

func (r *Report) exchangeColumns(rows []*Scenario) []Column {
	m := func(metric sample.Metric) func(*Scenario) *Interval {
		return func(s *Scenario) *Interval { return s.Interval(metric) }
	}
	columns := []Column{quantity(sample.Transactions, "transactions", 0, rows, m(sample.Transactions))}
	columns = append(columns, r.ratioColumns(rows, sample.Transactions)...)
	columns = append(columns, latencies(rows)...)
	return append(columns,
		quantity(sample.SenderCPU, "sender CPU", 1, rows, m(sample.SenderCPU)),
		quantity(sample.ReceiverCPU, "receiver CPU", 1, rows, m(sample.ReceiverCPU)),
		counted(sample.Retransmits, "retransmits", 4, rows, func(s *Scenario) *float64 { return s.Retransmits }),
		failedCalls(rows),
		trials(rows),
	)
}

// limits is the column of what held the traffic back, with the share of the
// trials where it was not so in all.
func limits(rows []*Scenario) Column {
	c := Column{Key: "limit", Name: "limited by", Text: true, Rank: 4, Cells: make([]Cell, len(rows))}
	for i, s := range rows {
		if s.Limit == "" {
			continue
		}
		c.Cells[i].Text = string(s.Limit)
		if s.LimitShare < 0.95 {
			c.Cells[i].Text += fmt.Sprintf(" (%.0f %%)", 100*s.LimitShare)
		}
	}
	return c
}

// failedCalls is the column of the tools' failed socket calls, which is of
// interest only where there are any.
func failedCalls(rows []*Scenario) Column {
	return counted(sample.Errors, "errors", 2, rows, func(s *Scenario) *float64 {
		if s.Errors == nil || *s.Errors == 0 {
			return nil
		}
		return s.Errors
	})
}

// Legend explains the marks at the table's ratios, one sentence a mark that
// occurs: "~" with what would have been seen, and "?".
func (f Figures) Legend() []string {
	var would []string
	alike, suggested := false, false
	for _, c := range f.Columns {
		for i, cell := range c.Cells {
			alike, suggested = alike || cell.Alike, suggested || cell.Suggested
			if text := wouldShow("", cell.Detectable, cell.Value); cell.Alike && text != "" {
				would = append(would, f.Names[i]+": "+text)
			}
		}
	}
	var list []string
	if alike {
		text := "~ no difference shows"
		if len(would) > 0 {
			text += " (" + strings.Join(would, "; ") + ")"
		}
		list = append(list, text+".")
	}
	if suggested {
		list = append(list, suggestedLegend)
	}
	return list
}

// Interval returns the scenario's figure of m, wherever the contract keeps it;
// nil where it was not measured or is no interval (latency percentiles, sums).
func (s *Scenario) Interval(m sample.Metric) *Interval {
	switch m {
	case sample.Throughput:
		return s.Throughput
	case sample.Transactions:
		return s.Transactions
	case sample.SenderCPU:
		return s.SenderCPU
	case sample.ReceiverCPU:
		return s.ReceiverCPU
	case sample.SenderCPUPerByte:
		return s.SenderCPUPerByte
	case sample.ReceiverCPUPerByte:
		return s.ReceiverCPUPerByte
	case sample.PacketsPerSecond:
		return s.PacketsPerSecond
	}
	if iv, ok := s.Metrics[m]; ok {
		return &iv
	}
	return nil
}
