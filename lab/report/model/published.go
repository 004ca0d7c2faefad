package model

import (
	"cmp"
	"fmt"
	"slices"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// PublishedTable is a table of a public document, with the measured figures in the
// same rows and columns. Both also have ratios to their own baselines.
type PublishedTable struct {
	suite.Table
	Columns []string       `json:"columns"`
	Rows    []PublishedRow `json:"rows"`
}

// PublishedRow is one row of a document's table.
type PublishedRow struct {
	Name  string           `json:"name"`
	Cells []*PublishedCell `json:"cells"` // one for each column; nil if the document has no figure there
}

// PublishedCell is a figure of a document and the measured one.
type PublishedCell struct {
	suite.Published
	Measured *quantity.Interval `json:"measured,omitempty"` // in the metric's SI unit; nil for a published change
	Absent   string             `json:"absent,omitempty"`   // why nothing was measured
	// ByTool is a CPU figure by the traffic tool's own count; nil if the tool has none.
	// Measured is by the lab's meter then.
	ByTool *quantity.Interval `json:"by_tool,omitempty"`
	// Against is the baseline of both ratios; "" if there is no published ratio.
	Against        string             `json:"against,omitempty"`
	PublishedRatio *float64           `json:"published_ratio,omitempty"`
	MeasuredRatio  *quantity.Interval `json:"measured_ratio,omitempty"` // paired within blocks
	Agreement      Agreement          `json:"agreement,omitempty"`      // "" unless both ratios exist
	Why            string             `json:"why,omitempty"`            // reason for Agreement, or why there is none
	// Cause is the suite's cause of a difference; "" unless Agreement is Disagrees, and if
	// the suite knows none.
	Cause string `json:"cause,omitempty"`
	// Doubt explains why a published change contradicts the document's own figures.
	Doubt string `json:"doubt,omitempty"`
}

// publishedTables returns the plan's tables with the measured figures.
func (b *builder) publishedTables() []PublishedTable {
	var list []PublishedTable
	for _, t := range b.plan.Tables {
		out := PublishedTable{Table: t}
		for i := range b.plan.Published {
			if p := &b.plan.Published[i]; p.Table == t.Name {
				out.put(b.publishedCell(p))
			}
		}
		if len(out.Rows) > 0 {
			list = append(list, out)
		}
	}
	return list
}

// put sets the cell in its row and column. It adds them if they are new.
func (t *PublishedTable) put(c *PublishedCell) {
	row := slices.IndexFunc(t.Rows, func(r PublishedRow) bool { return r.Name == c.Row })
	if row < 0 {
		row = len(t.Rows)
		t.Rows = append(t.Rows, PublishedRow{Name: c.Row})
	}
	column := slices.Index(t.Columns, c.Column)
	if column < 0 {
		column = len(t.Columns)
		t.Columns = append(t.Columns, c.Column)
	}
	for i := range t.Rows {
		for len(t.Rows[i].Cells) < len(t.Columns) {
			t.Rows[i].Cells = append(t.Rows[i].Cells, nil)
		}
	}
	t.Rows[row].Cells[column] = c
}

func (b *builder) publishedCell(p *suite.Published) *PublishedCell {
	c := &PublishedCell{Published: *p}
	switch {
	case p.Metric == "":
		c.Absent = p.Note
		return c
	case p.Baseline != "":
		c.Against, c.PublishedRatio = p.Baseline, &p.Value
		c.Doubt = b.contradiction(p)
	default:
		c.Absent = b.whyNoFigure(p.Scenario, sample.Metric(p.Metric))
		if c.Absent == "" {
			iv := b.cells[p.Scenario].summary[sample.Metric(p.Metric)]
			c.Measured = &iv
			if own, ok := b.cells[p.Scenario].summary["tool_"+sample.Metric(p.Metric)]; ok && ofSide(sample.Metric(p.Metric)) {
				c.ByTool = &own
			}
		}
		c.Against = b.baselineOf(p.Scenario)
		if base := b.cells[c.Against]; base != nil && b.cells[p.Scenario] != nil && !comparable(sample.Metric(p.Metric), b.cells[p.Scenario].scenario, base.scenario) {
			c.Why = "both endpoints are on one node, so its CPU is not compared with that of a node that has one endpoint"
			break
		}
		c.PublishedRatio = b.publishedRatio(p, c.Against)
	}
	if c.PublishedRatio == nil {
		c.Against = ""
		return c
	}
	b.measureRatio(c)
	return c
}

// measureRatio sets the measured ratio and its agreement with the published ratio, or
// the reason why there is none.
func (b *builder) measureRatio(c *PublishedCell) {
	m := sample.Metric(c.Metric)
	for _, id := range []string{c.Scenario, c.Against} {
		if c.Why = b.whyNoFigure(id, m); c.Why != "" {
			if c.Baseline != "" {
				c.Absent = c.Why
			}
			if why := b.run.Skipped[id]; why != "" {
				c.Why = string(NotHere) + ": " + why
			}
			return
		}
	}
	over, _, _ := pair(m, b.cells[c.Scenario], b.cells[c.Against])
	switch p := b.paired(c.Scenario, c.Against, m); {
	case len(over) == 0:
		c.Why = cmp.Or(b.withoutCommonBlock(c.Scenario, c.Against), "no block has figures of both scenarios")
	case p == nil:
		c.Why = "there is no ratio: a trial has a figure of zero"
	default:
		c.MeasuredRatio = &p.Ratio
		if c.Agreement, c.Why = agree(*c.PublishedRatio, *c.MeasuredRatio); c.Agreement == Disagrees {
			c.Cause = b.plan.CauseOf(c.Scenario, c.Against, c.Metric)
		}
	}
}

// baselineOf returns the baseline of the plan's first comparison of a scenario; "" if
// there is none.
func (b *builder) baselineOf(id string) string {
	for _, c := range b.plan.Comparisons {
		if c.Subject == id {
			return c.Baseline
		}
	}
	return ""
}

// publishedRatio returns the ratio of a figure to the document's figure of the
// baseline in the same unit. It prefers a figure of the same table.
func (b *builder) publishedRatio(p *suite.Published, baseline string) *float64 {
	var base *suite.Published
	for i := range b.plan.Published {
		o := &b.plan.Published[i]
		if o.Scenario != baseline || o.Metric != p.Metric || o.Baseline != "" || o.Value <= 0 || o.Unit != p.Unit {
			continue
		}
		if base == nil || base.Table != p.Table && o.Table == p.Table {
			base = o
		}
	}
	if base == nil || baseline == "" || p.Value <= 0 {
		return nil
	}
	ratio := p.Value / base.Value
	return &ratio
}

// contradiction explains why a published change contradicts the figures of the same
// table; "" if it does not. It allows for rounding of the last digit.
func (b *builder) contradiction(p *suite.Published) string {
	var subject, base suite.Published
	for _, o := range slices.Backward(b.plan.Published) {
		switch {
		case o.Table != p.Table || o.Metric != p.Metric || o.Baseline != "":
		case o.Scenario == p.Scenario:
			subject = o
		case o.Scenario == p.Baseline:
			base = o
		}
	}
	if subject.Scenario == "" || base.Value <= base.Step/2 {
		return ""
	}
	low := (subject.Value - subject.Step/2) / (base.Value + base.Step/2)
	high := (subject.Value + subject.Step/2) / (base.Value - base.Step/2)
	if p.Value+p.Step/2 >= low && p.Value-p.Step/2 <= high {
		return ""
	}
	return fmt.Sprintf("the document's own figures, %s and %s, give %s and not %s", subject.Printed, base.Printed, changeText(subject.Value/base.Value), p.Printed)
}

// whyNoFigure returns why a scenario has no figure of m; "" if it has one.
func (b *builder) whyNoFigure(id string, m sample.Metric) string {
	c := b.cells[id]
	switch {
	case c == nil && b.plan.Short:
		return "not in the short form"
	case c == nil:
		return "not in this run"
	case b.run.Skipped[id] != "":
		return "skipped: " + b.run.Skipped[id]
	case len(c.ok) == 0:
		return b.lacks(id)
	}
	if _, ok := c.summary[m]; !ok {
		return "not measured"
	}
	return ""
}
