package model

import (
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Ratio returns the comparison of m that has subject as its subject, the first
// in the plan's order; nil where there is none.
func (r *Report) Ratio(subject string, m sample.Metric) *Comparison {
	for i := range r.Comparisons {
		if c := &r.Comparisons[i]; c.Subject == subject && c.Metric == m {
			return c
		}
	}
	return nil
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
		to.Cells[i] = Cell{Text: r.baselineName(c)}
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

// baselineName is the baseline's group where it differs from the subject in
// nothing else, or its id.
func (r *Report) baselineName(c *Comparison) string {
	if suite.Part(c.Baseline) == suite.Part(c.Subject) && suite.Group(c.Baseline) != suite.Group(c.Subject) {
		return suite.Group(c.Baseline)
	}
	return c.Baseline
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
		} else if c := r.anyRatio(p.Scenario); c != nil {
			b.Baseline = c.Baseline
		}
		for _, base := range r.Published {
			if base.Scenario == b.Baseline && base.Metric == p.Metric && base.Value > 0 {
				ratio := p.Value / base.Value
				b.PublishedRatio = &ratio
				break
			}
		}
		list = append(list, b)
	}
	return list
}

func (r *Report) anyRatio(subject string) *Comparison {
	for i := range r.Comparisons {
		if r.Comparisons[i].Subject == subject {
			return &r.Comparisons[i]
		}
	}
	return nil
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
