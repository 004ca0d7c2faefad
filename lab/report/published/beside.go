package published

import (
	"slices"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// WithoutTable lists the published figures that are in no table, in the plan's order, each with
// its ratio to the baseline. Rates depend on the machine, so readers must compare the ratios.
func WithoutTable(r *model.Report) (list []*model.PublishedCell) {
	for _, p := range r.Published {
		if p.Table != "" {
			continue // the report shows it in the table
		}
		b := &model.PublishedCell{Published: p.Published, Measured: p.Measured}
		if c := r.Ratio(p.Scenario, sample.Metric(p.Metric)); c != nil {
			b.MeasuredRatio = &c.Ratio
			b.Against = c.Baseline
		} else if c := r.Ratio(p.Scenario, ""); c != nil {
			b.Against = c.Baseline
		}
		if i := slices.IndexFunc(r.Published, func(o model.Published) bool {
			return o.Scenario == b.Against && o.Metric == p.Metric && o.Value > 0
		}); i >= 0 {
			ratio := p.Value / r.Published[i].Value
			b.PublishedRatio = &ratio
		}
		list = append(list, b)
	}
	return list
}

// besideTable returns the published figures that are in no table, with their documents.
func besideTable(r *model.Report) document.Table {
	t := document.Table{Columns: slices.Concat(document.Words("scenario", "what"), document.Figures("published", "measured", "ratio published", "ratio measured"), document.Words("source"))}
	for _, b := range WithoutTable(r) {
		source, measured, ratio := b.Source, "", ""
		if b.Note != "" {
			source += " (" + b.Note + ")"
		}
		m := sample.Metric(b.Metric)
		if b.Measured != nil {
			scale := quantity.ScaleOf(m, b.Measured.Median)
			measured, _ = scale.Figure(*b.Measured)
			measured = quantity.WithUnit(measured, scale.Unit)
		}
		if b.MeasuredRatio != nil {
			ratio, _ = quantity.Scale{By: 1}.Figure(*b.MeasuredRatio)
		}
		t.Add(b.Scenario, m.Label(), b.Printed, measured, PublishedRatioText(b), ratio, source)
	}
	return t
}
