package tables

import (
	"cmp"
	"slices"
	"strconv"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/units"
)

// ScaleOfRows returns one scale for the rows' medians of these metrics. ok is false if
// none of them was measured.
func ScaleOfRows(rows []*model.Scenario, metrics ...sample.Metric) (scale quantity.Scale, ok bool) {
	var medians []float64
	for _, s := range rows {
		for _, m := range metrics {
			if iv := s.Interval(m); iv != nil {
				medians = append(medians, iv.Median)
			}
		}
	}
	if metrics[0] == sample.LatencyP50 && medians != nil {
		medians = []float64{slices.Min(medians)} // choose the unit by the smallest median
	}
	return quantity.ScaleOf(metrics[0], medians...), medians != nil
}

// Quantity returns the column of one metric in one unit. Without a name the column
// has the metric's label.
func Quantity(m sample.Metric, name string, rows []*model.Scenario) Column {
	scale, _ := ScaleOfRows(rows, m)
	return columnOf(m, cmp.Or(name, m.Label()), scale, rows)
}

// columnOf returns a column with the intervals of one metric, or with its sums over
// the trials.
func columnOf(m sample.Metric, name string, scale quantity.Scale, rows []*model.Scenario) Column {
	c := Column{Key: string(m), Name: name, Unit: scale.Unit, Cells: make([]Cell, len(rows))}
	for i, s := range rows {
		if iv := s.Interval(m); iv != nil {
			median, bounds := scale.Figure(*iv)
			c.Cells[i] = Cell{Text: median, Range: bounds, Value: iv.Median, Has: true}
		} else if v := summed(s, m); v != nil {
			c.Cells[i] = Cell{Text: units.FormatCount(*v), Value: *v, Has: true}
		}
	}
	return c
}

// latencies returns the columns of the latency percentiles. All have the unit of the
// smallest median.
func latencies(rows []*model.Scenario) (columns []Column) {
	scale, _ := ScaleOfRows(rows, sample.LatencyP50)
	for _, p := range model.Percentiles {
		columns = append(columns, columnOf(p.Metric, p.Name, scale, rows))
	}
	return columns
}

// trials returns the column with the number of trials that yielded figures.
func trials(rows []*model.Scenario) Column {
	c := Column{Key: "trials", Name: "trials", Cells: make([]Cell, len(rows))}
	for i, s := range rows {
		if s.Trials+s.Failed == 0 {
			continue
		}
		c.Cells[i] = Cell{Text: strconv.Itoa(s.Trials), Value: float64(s.Trials), Has: true}
		if s.Failed > 0 {
			c.Cells[i].Text += " of " + strconv.Itoa(s.Trials+s.Failed)
		}
	}
	return c
}

// ratioColumns returns a column with the ratio to the baseline, and a column with the
// baseline's name. If all rows have the same baseline, the heading of the ratio names
// it, and the second column is omitted.
func ratioColumns(r *model.Report, rows []*model.Scenario, m sample.Metric) []Column {
	ratio := Column{Key: "ratio", Name: "ratio to baseline", Ranged: true, Cells: make([]Cell, len(rows))}
	to := Column{Key: "baseline", Name: "baseline", Text: true, Cells: make([]Cell, len(rows))}
	named := make(map[string]bool)
	for i, s := range rows {
		c := r.Ratio(s.ID, m)
		if c == nil {
			continue
		}
		median, bounds := quantity.Ratio(c.Ratio)
		ratio.Cells[i] = Cell{Text: median, Range: bounds, Verdict: c.Verdict, Detectable: c.Detectable, Value: c.Ratio.Median, Has: true}
		_, to.Cells[i].Text, _ = model.Names(c.Subject, c.Baseline)
		named[to.Cells[i].Text] = true
	}
	if len(named) != 1 {
		return []Column{ratio, to}
	}
	for name := range named {
		ratio.Name = "ratio to " + name
	}
	return []Column{ratio}
}
