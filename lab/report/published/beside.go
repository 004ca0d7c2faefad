package published

import (
	"slices"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// Beside is a published figure with the measured figure. Each of them also has its
// ratio to the baseline.
type Beside struct {
	model.Published
	Baseline       string             // scenario id; "" if the scenario has none
	PublishedRatio *float64           // to the published figure of the baseline; nil without one
	MeasuredRatio  *quantity.Interval // paired within blocks
}

// WithoutTable lists the published figures that are in no table, in the plan's order. Rates
// depend on the machine, so readers must compare the ratios to the baseline.
func WithoutTable(r *model.Report) []Beside {
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
		if i := slices.IndexFunc(r.Published, func(o model.Published) bool {
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
