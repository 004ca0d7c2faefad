package model

import (
	"slices"
	"strings"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Figures is one table of a report: of all streams, or of all request/response
// scenarios. Every output format shows these tables.
type Figures struct {
	// Title names the traffic of the rows: "stream: TCP stream of 128 KiB".
	Title string
	// Exchange: request/response. Otherwise the rows are streams.
	Exchange bool
	Rows     []*Scenario
	// Names has the name of each row: the scenario's id, or its group if all rows
	// have the same workload.
	Names   []string
	Columns []Column
}

// Column has one figure of every row.
type Column struct {
	Key  string // identifier for programs; for a metric its sample.Metric
	Name string // for people, without the unit
	Unit string // empty for a bare count or ratio
	// Text: the cells are words, not figures.
	Text bool
	// Ranged: a terminal shows the intervals beside the figures.
	Ranged bool
	Cells  []Cell // one for each row
}

// Cell is one printed figure, in the column's unit. The zero Cell is a figure that was
// not measured.
type Cell struct {
	Text string // the figure, or words
	// Range is the interval, "[10.6, 11.0]"; "" if there is none.
	Range string
	// Verdict and Detectable are set for a ratio, as in Comparison.
	Verdict    Verdict
	Detectable *float64
	// Value is the figure in the metric's SI unit, if Has is true.
	Value float64
	Has   bool
}

// Figures lists the tables of the report: streams first, then request/response. It
// leaves out columns without a figure. A run between pairs of hosts has matrices and no
// tables.
func (r *Report) Figures() []Figures {
	if r.HostMatrices != nil {
		return nil
	}
	var tables []Figures
	for _, exchange := range []bool{false, true} {
		var rows []*Scenario
		for i := range r.Scenarios {
			if r.Scenarios[i].Workload.Kind.Exchange() == exchange {
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
	measured := func(c Cell) bool { return c.Text != "" }
	for _, c := range r.columns(rows, exchange) {
		if slices.ContainsFunc(c.Cells, measured) {
			f.Columns = append(f.Columns, c)
		}
	}
	return f
}

// heading returns the table's title and the names of its rows. If all rows have the
// same workload, only the title names it.
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
			names = append(names, suite.Group(s.ID))
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

// columns lists the columns of a table in order. On a narrow terminal the last
// columns move to a separate table.
func (r *Report) columns(rows []*Scenario, exchange bool) (list []Column) {
	add := func(metrics ...sample.Metric) {
		for _, m := range metrics {
			list = append(list, Quantity(m, "", rows))
		}
	}
	if exchange {
		add(sample.Transactions)
		list[0].Ranged = true
		list = append(list, r.ratioColumns(rows, sample.Transactions)...)
		list = append(list, latencies(rows)...)
		add(sample.LoadThroughput)
		add(sample.SenderCPU, sample.ReceiverCPU)
	} else {
		add(sample.Throughput)
		list[0].Ranged = true
		list = append(list, r.ratioColumns(rows, sample.Throughput)...)
		list = append(list, Quantity(sample.SenderCPUPerByte, "sender CPU", rows), Quantity(sample.ReceiverCPUPerByte, "receiver CPU", rows))
		list = append(list, limits(rows))
		add(sample.DatagramsSent, sample.DatagramsReceived, sample.LossRatio, sample.SocketLoss, sample.PathLoss, sample.SenderCPU, sample.ReceiverCPU)
		ratio := r.ratioColumns(rows, sample.Capacity)[0]
		ratio.Key, ratio.Name = "capacity_ratio", "ratio of capacity"
		list = append(list, Quantity(sample.Capacity, "capacity", rows), ratio)
	}
	if slices.ContainsFunc(rows, func(s *Scenario) bool { return s.Endpoint.HostVNIC }) {
		add(sample.HostThroughput, sample.HostShare)
	}
	if slices.ContainsFunc(rows, func(s *Scenario) bool { return s.Fabric.Cut > 0 }) {
		add(sample.Interruption, sample.LostDatagrams)
	}
	add(sample.Retransmits, sample.Errors)
	if !exchange {
		add(sample.ToolSenderFrame, sample.ToolReceiverFrame)
	}
	return append(list, trials(rows))
}

// limits returns the column that shows the limit of each scenario's traffic. If the
// limit does not apply to all trials, the cell has their share.
func limits(rows []*Scenario) Column {
	c := Column{Key: "limit", Name: "limited by", Text: true, Cells: make([]Cell, len(rows))}
	for i, s := range rows {
		if s.Limit == "" {
			continue
		}
		c.Cells[i].Text = string(s.Limit) + s.limitShare("")
	}
	return c
}

// Legend explains the marks beside the table's ratios: one sentence for each mark
// that occurs.
func (f Figures) Legend() []string {
	var marks []ratioMark
	for _, c := range f.Columns {
		for i, cell := range c.Cells {
			marks = append(marks, ratioMark{f.Names[i], cell.Verdict, cell.Detectable, cell.Value})
		}
	}
	return legend(marks)
}

// Interval returns the scenario's figure of m, from its field or from Metrics. It
// returns nil if m was not measured, or is a sum over the trials.
func (s *Scenario) Interval(m sample.Metric) *quantity.Interval {
	if f := s.field(m); f != nil {
		return *f
	}
	if iv, ok := s.Metrics[m]; ok {
		return &iv
	}
	return nil
}

// field returns the address of the Scenario field that has the interval of m;
// nil if m has no field and is in Metrics.
func (s *Scenario) field(m sample.Metric) **quantity.Interval {
	switch m {
	case sample.Throughput:
		return &s.Throughput
	case sample.Transactions:
		return &s.Transactions
	case sample.SenderCPU:
		return &s.SenderCPU
	case sample.ReceiverCPU:
		return &s.ReceiverCPU
	case sample.SenderCPUPerByte:
		return &s.SenderCPUPerByte
	case sample.ReceiverCPUPerByte:
		return &s.ReceiverCPUPerByte
	case sample.PacketsPerSecond:
		return &s.PacketsPerSecond
	}
	return nil
}

// sum returns the sum of m over the scenario's trials; nil if no trial has m.
func (s *Scenario) sum(m sample.Metric) *float64 {
	switch {
	case m == sample.Retransmits:
		return s.Retransmits
	case m == sample.Errors && s.Errors != nil && *s.Errors > 0: // zero errors are not shown
		return s.Errors
	}
	return nil
}

// Counting returns the scenario's samples that the report's figures are
// computed from.
func (s *Scenario) Counting() []*sample.Sample {
	all := make([]*sample.Sample, len(s.Samples))
	for i := range s.Samples {
		all[i] = &s.Samples[i]
	}
	return sample.Counting(all)
}

// Absent returns why a row has no figures, in a few words; empty if it has
// some.
func (s *Scenario) Absent() string {
	switch {
	case s.Skipped != "":
		return "skipped"
	case s.Trials == 0:
		return "no figures"
	}
	return ""
}
