package model

import (
	"cmp"
	"maps"
	"slices"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// groupMatrix shows the CPU time of the nodes' control groups, such as those of the CNI
// plugin's agent. ok is false if no scenario has such figures.
func (r *Report) groupMatrix() (x Matrix, ok bool) {
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
	slices.SortStableFunc(order, func(a, b sample.Metric) int { return after(a.Side() != "sender", b.Side() != "sender") })
	scale := quantity.Scale{Unit: "% of a CPU", By: 0.01}
	x = Matrix{Name: "CPU of control groups, in " + scale.Unit, Corner: "scenario"}
	for _, m := range order {
		x.Columns = append(x.Columns, m.Group()+" at the "+m.Side())
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		row := MatrixRow{Name: s.ID}
		for _, m := range order {
			cell := MatrixCell{Scenario: s.ID, Text: cmp.Or(s.Absent(), "none"), Why: s.Skipped}
			if iv := s.Interval(m); iv != nil {
				cell.Text, _ = scale.Figure(*iv)
			}
			row.Cells = append(row.Cells, cell)
		}
		x.Rows = append(x.Rows, row)
	}
	x.Legend.Say("CPU time that the kernel charges to the control groups of pods and daemons. It charges softirqs to the process that they interrupt, or to none: most work for packets in the kernel is not in these figures.")
	return x, len(order) > 0
}
