package published

import (
	"slices"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
)

const (
	beyondTitle = "Beyond the document's tables"
	beyondLead  = "No table above has these scenarios of the run. Some measure what the document planned next, some have links with the document's rates, and some have other systems. A ratio is the scenario's figure divided by that of the baseline in the last column. A sign after a ratio means: `~` no difference shows, `?` the difference is significant only before the correction for many comparisons, `!` the figures vary too much to judge, `…` there are too few trials."
)

// beyond lists the scenarios that are in no table of the document. It shows the transactions of request/response and the
// throughput of other traffic, with the ratio to the baseline.
func beyond(r *model.Report) document.Table {
	t := document.Table{Columns: slices.Concat(document.Words("scenario", "what"), document.Figures("measured", "ratio"), document.Words("baseline"))}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		m := sample.Throughput
		if s.Workload.Kind.Exchange() {
			m = sample.Transactions
		}
		iv := s.Interval(m)
		if iv == nil || inTable(r, s.ID) {
			continue
		}
		scale := quantity.ScaleOf(m, iv.Median)
		median, bounds := scale.Figure(*iv)
		row := t.Add(s.ID, m.Label())
		row.Cells = append(row.Cells, document.Cell{Text: quantity.WithUnit(median, scale.Unit), Range: bounds})
		var ratio document.Cell
		baseline := ""
		if c := r.Ratio(s.ID, m); c != nil {
			ratio.Text, ratio.Range = quantity.Ratio(c.Ratio)
			ratio.Mark, baseline = verdicts.Marks[c.Verdict], c.Baseline
		}
		row.Cells = append(row.Cells, ratio, document.Cell{Text: baseline})
	}
	return t
}

// inTable reports whether a scenario has a figure in a table of the document.
func inTable(r *model.Report, scenario string) bool {
	return slices.ContainsFunc(r.Tables, func(t model.PublishedTable) bool {
		return slices.ContainsFunc(t.Cells(), func(c *model.PublishedCell) bool { return c.Scenario == scenario })
	})
}
