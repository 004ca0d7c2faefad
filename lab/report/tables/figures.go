// Package tables arranges the figures of a report in tables and matrices.
package tables

import (
	"slices"
	"strings"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/verdicts"
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
	Rows     []*model.Scenario
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
	Verdict    model.Verdict
	Detectable *float64
	// Value is the figure in the metric's SI unit, if Has is true.
	Value float64
	Has   bool
}

// Of lists the tables of the report: streams first, then request/response. It
// leaves out columns without a figure. A run between pairs of hosts has matrices and no
// tables.
func Of(r *model.Report) []Figures {
	if r.HostMatrices != nil {
		return nil
	}
	var tables []Figures
	for _, exchange := range []bool{false, true} {
		var rows []*model.Scenario
		for i := range r.Scenarios {
			if r.Scenarios[i].Workload.Kind.Exchange() == exchange {
				rows = append(rows, &r.Scenarios[i])
			}
		}
		if len(rows) > 0 {
			tables = append(tables, table(r, rows, exchange))
		}
	}
	return tables
}

func table(r *model.Report, rows []*model.Scenario, exchange bool) Figures {
	f := Figures{Exchange: exchange, Rows: rows}
	f.Title, f.Names = heading(rows, exchange)
	measured := func(c Cell) bool { return c.Text != "" }
	for _, c := range columns(r, rows, exchange) {
		if slices.ContainsFunc(c.Cells, measured) {
			f.Columns = append(f.Columns, c)
		}
	}
	return f
}

// heading returns the table's title and the names of its rows. If all rows have the
// same workload, only the title names it.
func heading(rows []*model.Scenario, exchange bool) (title string, names []string) {
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
func columns(r *model.Report, rows []*model.Scenario, exchange bool) (list []Column) {
	add := func(metrics ...sample.Metric) {
		for _, m := range metrics {
			list = append(list, Quantity(m, "", rows))
		}
	}
	if exchange {
		add(sample.Transactions)
		list[0].Ranged = true
		list = append(list, ratioColumns(r, rows, sample.Transactions)...)
		list = append(list, latencies(rows)...)
		add(sample.LoadThroughput)
		add(sample.SenderCPU, sample.ReceiverCPU)
	} else {
		add(sample.Throughput)
		list[0].Ranged = true
		list = append(list, ratioColumns(r, rows, sample.Throughput)...)
		list = append(list, Quantity(sample.SenderCPUPerByte, "sender CPU", rows), Quantity(sample.ReceiverCPUPerByte, "receiver CPU", rows))
		list = append(list, limits(rows))
		add(sample.DatagramsSent, sample.DatagramsReceived, sample.LossRatio, sample.SocketLoss, sample.PathLoss, sample.SenderCPU, sample.ReceiverCPU)
		ratio := ratioColumns(r, rows, sample.Capacity)[0]
		ratio.Key, ratio.Name = "capacity_ratio", "ratio of capacity"
		list = append(list, Quantity(sample.Capacity, "capacity", rows), ratio)
	}
	if slices.ContainsFunc(rows, func(s *model.Scenario) bool { return s.Endpoint.HostVNIC }) {
		add(sample.HostThroughput, sample.HostShare)
	}
	changes := slices.ContainsFunc(rows, func(s *model.Scenario) bool { return s.Workload.Change != "" })
	if changes || slices.ContainsFunc(rows, func(s *model.Scenario) bool { return s.Fabric.Cut > 0 }) {
		add(sample.Interruption, sample.LostDatagrams)
	}
	if changes {
		add(sample.Changes, sample.ChangeTime, sample.ChangeTimeMax)
	}
	if slices.ContainsFunc(rows, func(s *model.Scenario) bool { return s.Fabric.Delay > 0 }) {
		add(sample.DelayErrorP50, sample.DelayErrorP99)
	}
	add(sample.DSCPShare, sample.Retransmits, sample.Errors)
	if !exchange {
		add(sample.ToolSenderFrame, sample.ToolReceiverFrame)
	}
	return append(list, trials(rows))
}

// limits returns the column that shows the limit of each scenario's traffic. If the
// limit does not apply to all trials, the cell has their share.
func limits(rows []*model.Scenario) Column {
	c := Column{Key: "limit", Name: "limited by", Text: true, Cells: make([]Cell, len(rows))}
	for i, s := range rows {
		if s.Limit == "" {
			continue
		}
		c.Cells[i].Text = string(s.Limit) + s.ShareOfLimit("")
	}
	return c
}

// Legend explains the marks beside the table's ratios: one sentence for each mark
// that occurs.
func (f Figures) Legend() []string {
	var marks []verdicts.RatioMark
	for _, c := range f.Columns {
		for i, cell := range c.Cells {
			marks = append(marks, verdicts.RatioMark{Name: f.Names[i], Verdict: cell.Verdict, Detectable: cell.Detectable, Ratio: cell.Value})
		}
	}
	return verdicts.Legend(marks)
}

// summed returns the sum of m over the scenario's trials; nil if no trial has m.
func summed(s *model.Scenario, m sample.Metric) *float64 {
	switch {
	case m == sample.Retransmits:
		return s.Retransmits
	case m == sample.Errors && s.Errors != nil && *s.Errors > 0: // zero errors are not shown
		return s.Errors
	}
	return nil
}

// Table returns the table as texts.
func (f Figures) Table() document.Table {
	t := document.Table{Columns: document.Words("scenario"), Split: true}
	for _, c := range f.Columns {
		t.Columns = append(t.Columns, document.Column{Name: c.Name, Unit: c.Unit, Words: c.Text, Plain: !c.Ranged})
	}
	for i, name := range f.Names {
		row := t.Add(name)
		if why := f.Rows[i].Absent(); why != "" {
			row.Cells[0].Mark = "(" + why + ")"
		}
		row.Scenario = f.Rows[i].ID
		for _, c := range f.Columns {
			cell := c.Cells[i]
			of := document.Cell{Text: cell.Text, Range: cell.Range, Mark: verdicts.Marks[cell.Verdict]}
			if cell.Has {
				of.Value = &cell.Value
			}
			row.Cells = append(row.Cells, of)
		}
	}
	return t
}

// OfElsewhere returns the tables of this CPU distance. It leaves out the workloads
// without a trial at this distance.
func OfElsewhere(e *model.Elsewhere) []Figures {
	return slices.DeleteFunc(Of(e.Report), func(f Figures) bool {
		return !slices.ContainsFunc(f.Rows, func(s *model.Scenario) bool { return s.Trials > 0 })
	})
}

// every returns a table with a row for each measured metric, in the order of the reports, and a
// column for each scenario.
func (f Figures) every() document.Table {
	t := document.Table{Columns: append(document.Words("metric"), document.Figures(f.Names...)...), Split: true}
	for _, info := range sample.Known() {
		if _, ok := ScaleOfRows(f.Rows, info.Metric); !ok {
			continue
		}
		c := Quantity(info.Metric, "", f.Rows)
		row := t.Add(strings.TrimSuffix(c.Name+", "+c.Unit, ", "))
		for _, cell := range c.Cells {
			row.Cells = append(row.Cells, document.Cell{Text: cell.Text, Range: cell.Range})
		}
	}
	return t
}

// Sections returns each table with the explanation of its marks, and a table of every metric.
func Sections(tables []Figures) (list []document.Section) {
	for _, f := range tables {
		list = append(list, document.Section{Title: f.Title, Tables: f.Table().List(), Notes: f.Legend(), Sections: []document.Section{
			{Title: "Every metric of " + f.Title, Tables: f.every().List(), Reference: true},
		}})
	}
	return list
}
