package tables

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// needsCPUs is the part of a reason that says how many CPUs a skipped scenario needs.
var needsCPUs = regexp.MustCompile(`needs \d+ CPUs?`)

// A smaller table is readable without a matrix.
const (
	leastMatrixRows    = 3
	leastMatrixColumns = 2
)

// Matrix returns the matrix of one metric: "812 (0.93)". ok is false if the scenarios have no
// figure, or are too few for a matrix.
func Matrix(r *model.Report, rows []*model.Scenario, m sample.Metric) (x document.Section, ok bool) {
	var groups, parts []string
	for _, s := range rows {
		group, part := suite.Group(s.ID), suite.Part(s.ID)
		if part == "" {
			return x, false
		}
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if len(groups) < leastMatrixRows || len(parts) < leastMatrixColumns {
		return x, false
	}
	t := MatrixTable("system", parts)
	for _, group := range groups {
		row := t.Add(group)
		row.Cells = append(row.Cells, make([]document.Cell, len(parts))...)
	}
	scale, ok := ScaleOfRows(rows, m)
	x.Title = phrase.Capital(m.Label())
	info, _ := sample.Describe(m)
	units := info.Unit == "ns" || scale.Unit == "" // latencies differ by orders of magnitude
	if !units {
		x.Title += " in " + scale.Unit
	}
	var baselines []string
	for _, s := range rows {
		cell := &t.Rows[slices.Index(groups, suite.Group(s.ID))].Cells[1+slices.Index(parts, suite.Part(s.ID))]
		if c := fill(r, cell, s, m, scale, units); c != nil && !slices.Contains(baselines, suite.Group(c.Baseline)) {
			baselines = append(baselines, suite.Group(c.Baseline))
		}
	}
	x.Lead = "Medians of the trials, by system and workload."
	if baselines != nil {
		x.Lead += " The figure in brackets is the ratio to the baseline. ~: " + model.NoDifference + ", ?: a difference is only suggested, …: too few trials to tell, !: too noisy to judge."
	}
	switch len(baselines) {
	case 0:
	case 1:
		x.Title += ", and the ratio to " + baselines[0]
	default:
		x.Title += ", and the ratio to the baseline"
	}
	x.Tables = t.List()
	return x, ok
}

// MatrixTable returns an empty table with the columns. On a narrow terminal it is split.
func MatrixTable(corner string, columns []string) document.Table {
	return document.Table{Columns: append(document.Words(corner), document.Figures(columns...)...), Split: true}
}

// fill sets a cell, and returns the comparison that it shows; nil if there is none.
func fill(r *model.Report, cell *document.Cell, s *model.Scenario, m sample.Metric, scale quantity.Scale, units bool) *model.Comparison {
	cell.Text, cell.Why = s.Absent(), s.Skipped
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
	cell.Range = "(" + strings.TrimSpace(ratio+" "+verdicts.Marks[c.Verdict]) + ")"
	cell.Tone = shade(c)
	return c
}

// shade returns the shade of a ratio: degree 1 from a factor of 1.05 on, 2 from 1.25, 3
// from 2.
func shade(c *model.Comparison) string {
	info, _ := sample.Describe(c.Metric)
	change := c.Ratio.Median
	if info.Better < 0 && change > 0 {
		change = 1 / change
	}
	if c.Verdict.Equal() || info.Better == 0 {
		return ""
	}
	return ShadeOf(change)
}

// ShadeOf returns the background class of a cell, such as "worse2": how far a ratio is from 1. A
// ratio above 1 is better.
func ShadeOf(ratio float64) string {
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

// GroupMatrix shows the CPU time of the nodes' control groups, such as those of the CNI
// plugin's agent. ok is false if no scenario has such figures.
func GroupMatrix(r *model.Report) (x document.Section, ok bool) {
	metrics := make(map[sample.Metric]bool)
	for i := range r.Scenarios {
		for m := range r.Scenarios[i].Metrics {
			if m.Group() != "" {
				metrics[m] = true
			}
		}
	}
	order := slices.Sorted(maps.Keys(metrics))
	// The sender's columns are the last in the order of their names, and the first here.
	slices.SortStableFunc(order, func(a, b sample.Metric) int { return model.After(a.Side() != "sender", b.Side() != "sender") })
	scale := quantity.Scale{Unit: "% of a CPU", By: 0.01}
	var columns []string
	for _, m := range order {
		columns = append(columns, m.Group()+" at the "+m.Side())
	}
	t := MatrixTable("scenario", columns)
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		row := t.Add(s.ID)
		for _, m := range order {
			cell := document.Cell{Text: cmp.Or(s.Absent(), "none"), Why: s.Skipped}
			if iv := s.Interval(m); iv != nil {
				cell.Text, _ = scale.Figure(*iv)
			}
			row.Cells = append(row.Cells, cell)
		}
	}
	x.Title, x.Tables = "CPU of control groups, in "+scale.Unit, t.List()
	x.Notes = []string{"CPU time that the kernel charges to the control groups of pods and daemons. It charges softirqs to the process that they interrupt, or to none: most work for packets in the kernel is not in these figures."}
	if slices.ContainsFunc(order, func(m sample.Metric) bool { return m.Group() == sample.ControlPlane }) {
		x.Notes = append(x.Notes, "The control plane is metered by process, where it runs on the nodes' CPUs and outside their network namespaces. Its CPU time is part of the nodes' CPU, and the gate on foreign programs does not count it.")
	}
	return x, len(order) > 0
}
