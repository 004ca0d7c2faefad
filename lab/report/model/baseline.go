package model

import (
	"slices"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// Ratio returns the first comparison of subject in metric m, in the plan's order; nil
// if there is none. "" stands for any metric.
func (r *Report) Ratio(subject string, m sample.Metric) *Comparison {
	i := slices.IndexFunc(r.Comparisons, func(c Comparison) bool { return c.Subject == subject && (m == "" || c.Metric == m) })
	if i < 0 {
		return nil
	}
	return &r.Comparisons[i]
}

// Row returns the scenario with this id; nil if there is none.
func (r *Report) Row(id string) *Scenario {
	i := slices.IndexFunc(r.Scenarios, func(s Scenario) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &r.Scenarios[i]
}

// ratioColumns returns a column with the ratio to the baseline, and a column with the
// baseline's name. If all rows have the same baseline, the heading of the ratio names
// it, and the second column is omitted.
func (r *Report) ratioColumns(rows []*Scenario, m sample.Metric) []Column {
	ratio := Column{Key: "ratio", Name: "ratio to baseline", Ranged: true, Cells: make([]Cell, len(rows))}
	to := Column{Key: "baseline", Name: "baseline", Text: true, Cells: make([]Cell, len(rows))}
	named := make(map[string]bool)
	for i, s := range rows {
		c := r.Ratio(s.ID, m)
		if c == nil {
			continue
		}
		median, bounds := quantity.Scale{By: 1}.Figure(c.Ratio)
		ratio.Cells[i] = Cell{Text: median, Range: bounds, Verdict: c.Verdict, Detectable: c.Detectable, Value: c.Ratio.Median, Has: true}
		_, to.Cells[i].Text, _ = Names(c.Subject, c.Baseline)
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

// Beside is a published figure with the measured figure. Each of them also has its
// ratio to the baseline.
type Beside struct {
	Published
	Baseline       string             // scenario id; "" if the scenario has none
	PublishedRatio *float64           // to the published figure of the baseline; nil without one
	MeasuredRatio  *quantity.Interval // paired within blocks
}

// Beside lists the published figures that are in no table, in the plan's order. Rates
// depend on the machine, so readers must compare the ratios to the baseline.
func (r *Report) Beside() []Beside {
	list := make([]Beside, 0, len(r.Published))
	for _, p := range r.Published {
		if p.Table != "" {
			continue // the report shows it in the table
		}
		b := Beside{Published: p}
		if c := r.Ratio(p.Scenario, sample.Metric(p.Metric)); c != nil {
			b.MeasuredRatio = &c.Ratio
			b.Baseline = c.Baseline
		} else if c := r.Ratio(p.Scenario, ""); c != nil {
			b.Baseline = c.Baseline
		}
		if i := slices.IndexFunc(r.Published, func(o Published) bool {
			return o.Scenario == b.Baseline && o.Metric == p.Metric && o.Value > 0
		}); i >= 0 {
			ratio := p.Value / r.Published[i].Value
			b.PublishedRatio = &ratio
		}
		list = append(list, b)
	}
	return list
}

// Label names the published metric for people.
func (b Beside) Label() string { return sample.Metric(b.Metric).Label() }

// MeasuredText prints the measured figure with a unit for its size; "" if it was not
// measured.
func (b Beside) MeasuredText() string {
	if b.Measured == nil {
		return ""
	}
	scale := quantity.ScaleOf(sample.Metric(b.Metric), b.Measured.Median)
	median, _ := scale.Figure(*b.Measured)
	return quantity.WithUnit(median, scale.Unit)
}

// PublishedRatioText prints the ratio of the published figures; "" if there is none.
func (b Beside) PublishedRatioText() string {
	if b.PublishedRatio == nil {
		return ""
	}
	return quantity.Scale{By: 1}.Print(*b.PublishedRatio)
}

// MeasuredRatioText prints the median of the measured ratio; "" if there is none.
func (b Beside) MeasuredRatioText() string {
	if b.MeasuredRatio == nil {
		return ""
	}
	median, _ := quantity.Scale{By: 1}.Figure(*b.MeasuredRatio)
	return median
}
