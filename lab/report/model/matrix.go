package model

import (
	"regexp"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Matrix shows one metric of many scenarios: a row for each group, and a column for each
// part of the scenarios' ids after "/". So systems can be compared at one glance.
type Matrix struct {
	Metric   sample.Metric
	Unit     string // of all cells; empty if each cell has a unit
	Baseline string // group with which all ratios compare; empty if there are several or none
	Columns  []string
	Rows     []MatrixRow

	// Name, Corner and Lead replace the title, the heading of the rows and the text
	// below the title; "" for the usual ones. Legend explains marks in the cells.
	Name, Corner, Lead string
	Legend             phrase.Lines
}

// MatrixRow is one group of scenarios.
type MatrixRow struct {
	Name  string
	Cells []MatrixCell // one for each column
}

// MatrixCell is one scenario. The zero cell is a scenario that the plan does not have.
type MatrixCell struct {
	Scenario string
	Text     string // the figure, or why there is none
	Why      string // the reason in a sentence, for a skipped scenario
	Ratio    string // to the baseline, with the mark of the verdict; empty if there is none
	// Shade is "better" or "worse" and a degree from 1 to 3; empty if no difference
	// shows.
	Shade string
}

// needsCPUs is the part of a reason that says how many CPUs a skipped scenario needs.
var needsCPUs = regexp.MustCompile(`needs \d+ CPUs?`)

// A smaller table is readable without a matrix.
const (
	leastMatrixRows    = 3
	leastMatrixColumns = 2
)

// Matrices lists the report's matrices: of datagrams, of TCP streams, and of
// request/response. Request/response beside a load has one matrix for each percentile
// of the latency, and one of the load. A run in a cluster has one of control groups. A run between pairs of hosts has a matrix of hosts
// for each scenario.
func (r *Report) Matrices() (list []Matrix) {
	for i := range r.HostMatrices {
		switch x := &r.HostMatrices[i]; {
		case x.Blocks == 0: // the notes have the reason
		case len(x.Hosts) > mostMatrixHosts:
			list = append(list, x.byHost())
		default:
			list = append(list, x.matrix())
		}
	}
	if r.HostMatrices != nil {
		return list
	}
	var datagrams, streams, exchanges []*Scenario
	loaded := false
	for i := range r.Scenarios {
		switch s := &r.Scenarios[i]; {
		case s.Workload.Kind.Exchange():
			exchanges = append(exchanges, s)
			loaded = loaded || s.Workload.Load > 0
		case s.Workload.Kind == suite.UDPStream:
			datagrams = append(datagrams, s)
		default:
			streams = append(streams, s)
		}
	}
	add := func(rows []*Scenario, metrics ...sample.Metric) {
		for _, m := range metrics {
			if x, ok := r.matrix(rows, m); ok {
				list = append(list, x)
			}
		}
	}
	add(datagrams, sample.DatagramsReceived)
	add(streams, sample.Throughput)
	if loaded {
		add(exchanges, sample.LatencyP50, sample.LatencyP99, sample.LatencyP999, sample.LoadThroughput)
	} else {
		add(exchanges, sample.Transactions)
	}
	if x, ok := r.groupMatrix(); ok {
		list = append(list, x)
	}
	return list
}

// matrix returns the matrix of one metric. ok is false if the scenarios have no figure,
// or are too few for a matrix.
func (r *Report) matrix(rows []*Scenario, m sample.Metric) (x Matrix, ok bool) {
	x.Metric = m
	at := make(map[string]int) // row of each group
	for _, s := range rows {
		group, part := suite.Group(s.ID), suite.Part(s.ID)
		if part == "" {
			return x, false
		}
		if _, known := at[group]; !known {
			at[group] = len(x.Rows)
			x.Rows = append(x.Rows, MatrixRow{Name: group})
		}
		if !slices.Contains(x.Columns, part) {
			x.Columns = append(x.Columns, part)
		}
	}
	if len(x.Rows) < leastMatrixRows || len(x.Columns) < leastMatrixColumns {
		return x, false
	}
	for i := range x.Rows {
		x.Rows[i].Cells = make([]MatrixCell, len(x.Columns))
	}
	scale, ok := ScaleOfRows(rows, m)
	if info, _ := sample.Describe(m); info.Unit != "ns" { // latencies differ by orders of magnitude
		x.Unit = scale.Unit
	}
	var baselines []string
	for _, s := range rows {
		cell := &x.Rows[at[suite.Group(s.ID)]].Cells[slices.Index(x.Columns, suite.Part(s.ID))]
		if c := r.fill(cell, s, m, scale, x.Unit == ""); c != nil && !slices.Contains(baselines, suite.Group(c.Baseline)) {
			baselines = append(baselines, suite.Group(c.Baseline))
		}
	}
	if len(baselines) == 1 {
		x.Baseline = baselines[0]
	}
	return x, ok
}

// fill sets a cell, and returns the comparison that it shows; nil if there is none.
func (r *Report) fill(cell *MatrixCell, s *Scenario, m sample.Metric, scale quantity.Scale, units bool) *Comparison {
	cell.Scenario, cell.Text, cell.Why = s.ID, s.Absent(), s.Skipped
	if needs := needsCPUs.FindString(s.Skipped); needs != "" {
		cell.Text = needs
	}
	iv := s.Interval(m)
	if iv == nil {
		return nil
	}
	if units {
		cell.Text = quantity.ScaleOf(m, iv.Median).Print(iv.Median)
	} else {
		cell.Text, _ = scale.Figure(*iv)
	}
	by := m
	if m == sample.DatagramsReceived {
		by = sample.Throughput // datagrams of one size: the ratio is the same
	}
	c := r.Ratio(s.ID, by)
	if c == nil {
		return nil
	}
	ratio, _ := quantity.Scale{By: 1}.Figure(c.Ratio)
	cell.Ratio = strings.TrimSpace(ratio + " " + marks[c.Verdict])
	cell.Shade = shade(c)
	return c
}

// shade returns the shade of a ratio: degree 1 from a factor of 1.05 on, 2 from 1.25, 3
// from 2.
func shade(c *Comparison) string {
	info, _ := sample.Describe(c.Metric)
	change := c.Ratio.Median
	if info.Better < 0 && change > 0 {
		change = 1 / change
	}
	if c.Verdict.Equal() || info.Better == 0 {
		return ""
	}
	return shadeOf(change)
}

// shadeOf returns the shade of a ratio of a figure of which more is better.
func shadeOf(ratio float64) string {
	worse := ratio < 1
	if worse && ratio > 0 {
		ratio = 1 / ratio
	}
	degree := ""
	for _, d := range []struct {
		from   float64
		degree string
	}{{1.05, "1"}, {1.25, "2"}, {2, "3"}} {
		if ratio >= d.from {
			degree = d.degree
		}
	}
	switch {
	case degree == "":
		return ""
	case worse:
		return "worse" + degree
	}
	return "better" + degree
}

// Title names the figures of the matrix: "Datagrams received in k/s, and the ratio to
// bridge".
func (x Matrix) Title() string {
	if x.Name != "" {
		return x.Name
	}
	title := phrase.Capital(x.Metric.Label())
	if x.Unit != "" {
		title += " in " + x.Unit
	}
	switch {
	case x.Baseline != "":
		title += ", and the ratio to " + x.Baseline
	case x.Compared():
		title += ", and the ratio to the baseline"
	}
	return title
}

// Compared reports whether a cell has a ratio.
func (x Matrix) Compared() bool {
	return slices.ContainsFunc(x.Rows, func(r MatrixRow) bool {
		return slices.ContainsFunc(r.Cells, func(c MatrixCell) bool { return c.Ratio != "" })
	})
}
