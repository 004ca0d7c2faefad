package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// grid is a table of a run. Each cell is a scenario's figure, or its ratio to the scenario of a baseline.
type grid struct {
	name    string // last part of the block's name, after the name of the part and a /; "" for the first block of the part
	corner  string
	columns []column
	lines   []line
	// byKind: the metric of a cell depends on its traffic. In place of throughput, request/response has
	// transactions. In place of CPU time per byte, all traffic but TCP streams has CPU time per packet.
	byKind bool
	sorted bool // the rows are sorted by the first column, and the largest figure is first
}

// column shows one metric. The scenario of a cell is group/workload. If group or workload is empty, the cell uses that of
// its line. over is the group of the baseline; if it is empty, the cell shows the figure and not a ratio.
type column struct {
	name, group, workload string
	metric                sample.Metric
	over                  string
}

// line is a row. A * in a group stands for the variant of the line, such as the fabric. over replaces the
// baseline of the columns. A line with targets has no scenarios: its targets, one for each column, are those of the lines below it.
type line struct {
	name, group, variant, workload, over string
	targets                              []bound
}

// bound is a target: an upper or lower limit of a ratio. The zero value is no target.
type bound struct {
	side  side
	limit float64
}

type side int

const (
	atLeast side = 1
	atMost  side = -1
)

// String formats a target.
func (b bound) String() string {
	if b.side == 0 {
		return "–"
	}
	return fmt.Sprintf("%s %.2f", map[side]string{atLeast: "≥", atMost: "≤"}[b.side], b.limit)
}

// within reports whether a value meets the target. Every value meets the zero value.
func (b bound) within(v float64) bool { return float64(b.side)*(v-b.limit) >= 0 }

// limits returns the limit of a target as a list. The list is empty for the zero value.
func (b bound) limits() []float64 {
	if b.side == 0 {
		return nil
	}
	return []float64{b.limit}
}

func least(v float64) bound { return bound{atLeast, v} }
func most(v float64) bound  { return bound{atMost, v} }

// missedMark follows each ratio that misses its target.
const missedMark = "✗"

// table fills the grid with the figures of a run. The last column has the number of trials.
func (g *grid) table(r *model.Report) document.Table {
	t := document.Table{Columns: document.Words(g.corner)}
	var targets []bound
	absolute := make([]tables.Column, len(g.columns))
	for i, c := range g.columns {
		head := document.Column{Name: c.name}
		if c.over == "" && !g.byKind {
			var rows []*model.Scenario
			for _, l := range g.lines {
				rows = append(rows, cmp.Or(r.Row(l.scenario(c)), &model.Scenario{}))
			}
			absolute[i] = tables.Quantity(c.metric, c.name, rows)
			head.Unit = absolute[i].Unit
		}
		t.Columns = append(t.Columns, head)
	}
	t.Columns = append(t.Columns, document.Column{Name: "trials"})
	for k, l := range g.lines {
		row := t.Add(l.name)
		if l.targets != nil {
			targets = l.targets
			for len(targets) < len(g.columns) {
				targets = append(targets, bound{})
			}
			for _, b := range targets {
				row.Cells = append(row.Cells, document.Cell{Text: b.String()})
			}
			row.Cells = append(row.Cells, document.Cell{})
			continue
		}
		var counts []int
		for i, c := range g.columns {
			var target bound
			if targets != nil {
				target = targets[i]
			}
			cell := document.Cell{Text: "–"}
			if s := r.Row(l.scenario(c)); s != nil {
				if why := s.Absent(); why != "" {
					row.Cells[0].Mark = "(" + why + ")"
				}
				if s.Trials > 0 {
					counts = append(counts, s.Trials)
				}
				switch {
				case c.over != "":
					cell = g.ratio(r, s, l.baseline(c), c.metric, target)
				case !g.byKind:
					if a := absolute[i].Cells[k]; a.Has {
						cell = document.Cell{Text: a.Text, Value: &a.Value}
					}
				default:
					if iv := s.Interval(g.metricOf(s, c.metric)); iv != nil {
						cell.Text = quantity.ScaleOf(g.metricOf(s, c.metric), iv.Median).Print(iv.Median)
					}
				}
			}
			row.Cells = append(row.Cells, cell)
		}
		row.Cells = append(row.Cells, document.Cell{Text: span(counts)})
	}
	if g.sorted {
		slices.SortStableFunc(t.Rows, func(a, b document.Row) int { return cmp.Compare(value(b), value(a)) })
	}
	return t
}

// value returns the figure in the first column of a row, or 0 if there is none.
func value(r document.Row) float64 {
	if v := r.Cells[1].Value; v != nil {
		return *v
	}
	return 0
}

// span prints the least and the largest of some numbers.
func span(counts []int) string {
	if len(counts) == 0 {
		return "0"
	}
	if least, most := slices.Min(counts), slices.Max(counts); least < most {
		return fmt.Sprintf("%d to %d", least, most)
	}
	return fmt.Sprint(counts[0])
}

func (l line) scenario(c column) string {
	return strings.ReplaceAll(cmp.Or(c.group, l.group), "*", l.variant) + "/" + cmp.Or(c.workload, l.workload)
}

func (l line) baseline(c column) string {
	return strings.ReplaceAll(cmp.Or(l.over, c.over), "*", l.variant) + "/" + cmp.Or(c.workload, l.workload)
}

// metricOf returns the metric that takes the place of another one for the traffic of a scenario; see grid.byKind.
func (g *grid) metricOf(s *model.Scenario, m sample.Metric) sample.Metric {
	kind := s.Workload.Kind
	switch {
	case !g.byKind:
	case m == sample.Throughput && kind.Exchange():
		return sample.Transactions
	case m == sample.SenderCPUPerByte && kind != suite.TCPStream:
		return sample.SenderCPUPerPacket
	case m == sample.ReceiverCPUPerByte && kind != suite.TCPStream:
		return sample.ReceiverCPUPerPacket
	}
	return m
}

// ratio returns the ratio of a scenario to a baseline. For the baseline, the text also has its figure.
func (g *grid) ratio(r *model.Report, s *model.Scenario, baseline string, m sample.Metric, target bound) document.Cell {
	m = g.metricOf(s, m)
	if s.ID == baseline {
		if iv := s.Interval(m); iv != nil {
			return document.Cell{Text: "1", Range: "(" + quantity.ScaleOf(m, iv.Median).Print(iv.Median) + ")"}
		}
	}
	i := slices.IndexFunc(r.Comparisons, func(c model.Comparison) bool {
		return c.Subject == s.ID && c.Baseline == baseline && c.Metric == m
	})
	if i < 0 {
		return document.Cell{Text: "–"}
	}
	c := r.Comparisons[i]
	cell := document.Cell{Mark: verdicts.Marks[c.Verdict]}
	cell.Text, cell.Range = quantity.Ratio(c.Ratio, target.limits()...)
	if !target.within(c.Ratio.Median) {
		cell.Mark = strings.TrimSpace(cell.Mark + " " + missedMark)
	}
	return cell
}

// judge adds an estimate with its interval. The target is met if the estimate is within the
// limit. If only the interval reaches the limit, the row says so.
func (b *session) judge(what string, c quantity.Interval, target bound) {
	measured := formatRatio(c)
	if !target.within(c.Median) && (target.within(c.Low) || target.within(c.High)) {
		measured += ", the interval reaches it"
	}
	b.row(what, target.String(), measured, target.within(c.Median))
}

func formatRatio(c quantity.Interval) string {
	return fmt.Sprintf("%.3f [%.3f, %.3f], n = %d", c.Median, c.Low, c.High, c.N)
}

// ratioOf returns the ratio of one subject to one baseline. A subject may have several
// baselines.
func ratioOf(r *model.Report, subject, baseline string, m sample.Metric) (quantity.Interval, bool) {
	for _, c := range r.Comparisons {
		if c.Subject == subject && c.Baseline == baseline && c.Metric == m {
			return c.Ratio, true
		}
	}
	return quantity.Interval{}, false
}
