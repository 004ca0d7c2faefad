package model

import (
	"slices"

	"windtunnel/lab/sample"
)

// Ratio returns the comparison of m, or of any metric for "", that has subject as
// its subject, the first in the plan's order; nil where there is none.
func (r *Report) Ratio(subject string, m sample.Metric) *Comparison {
	i := slices.IndexFunc(r.Comparisons, func(c Comparison) bool { return c.Subject == subject && (m == "" || c.Metric == m) })
	if i < 0 {
		return nil
	}
	return &r.Comparisons[i]
}

// Row returns the scenario with this id; nil where there is none.
func (r *Report) Row(id string) *Scenario {
	i := slices.IndexFunc(r.Scenarios, func(s Scenario) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &r.Scenarios[i]
}

// Alike reports whether enough trials were made to tell a difference, and none
// shows.
func (c *Comparison) Alike() bool { return c.Verdict == Alike }

// ratioColumns are the ratio to the baseline, and which that is. Where all rows
// have the same one, the ratio's heading names it instead.
func (r *Report) ratioColumns(rows []*Scenario, m sample.Metric) []Column {
	ratio := Column{Key: "ratio", Name: "ratio to baseline", Ranged: true, Cells: make([]Cell, len(rows))}
	to := Column{Key: "baseline", Name: "baseline", Text: true, Cells: make([]Cell, len(rows))}
	named := make(map[string]bool)
	for i, s := range rows {
		c := r.Ratio(s.ID, m)
		if c == nil {
			continue
		}
		median, bounds := Scale{By: 1}.Figure(c.Ratio)
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

// Beside is a published figure with the measured one and with what each is of
// its own baseline.
type Beside struct {
	Published
	Baseline       string    // scenario id; empty where the scenario has none
	PublishedRatio *float64  // to the published figure of the baseline, where there is one
	MeasuredRatio  *Interval // paired within blocks
}

// Beside lists the published figures that are in no table, in the plan's order. Rates of other
// machines say little; the ratios to the baseline are what can be compared.
func (r *Report) Beside() []Beside {
	list := make([]Beside, 0, len(r.Published))
	for _, p := range r.Published {
		if p.Table != "" {
			continue // it stands in its table
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

// MeasuredText prints the measured figure in a unit that suits it; empty
// where it was not measured.
func (b Beside) MeasuredText() string {
	if b.Measured == nil {
		return ""
	}
	scale := ScaleOf(sample.Metric(b.Metric), b.Measured.Median)
	median, _ := scale.Figure(*b.Measured)
	return withUnit(median, scale.Unit)
}

// PublishedRatioText prints the ratio of the published figures; empty where
// there is none.
func (b Beside) PublishedRatioText() string {
	if b.PublishedRatio == nil {
		return ""
	}
	return Scale{By: 1}.Print(*b.PublishedRatio)
}

// MeasuredRatioText prints the median of the measured ratio; empty where there
// is none.
func (b Beside) MeasuredRatioText() string {
	if b.MeasuredRatio == nil {
		return ""
	}
	median, _ := Scale{By: 1}.Figure(*b.MeasuredRatio)
	return median
}
