// Package published sets the figures of public documents beside the measured figures, and
// judges whether their ratios agree.
package published

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Tables returns the plan's tables with the measured figures.
func Tables(b *verdicts.Judge) []model.PublishedTable {
	var list []model.PublishedTable
	for _, t := range b.Plan.Tables {
		out := model.PublishedTable{PublishedTable: t}
		for i := range b.Plan.Published {
			if p := &b.Plan.Published[i]; p.Table == t.Name {
				put(&out, cell(b, p))
			}
		}
		for _, c := range out.Ratios() {
			if d := perByte(&out, c); d != nil {
				measure(b, d)
				judge(b, d)
				put(&out, d)
			}
		}
		if len(out.Rows) > 0 {
			list = append(list, out)
		}
	}
	return list
}

// put sets the cell in its row and column. It adds them if they are new.
func put(t *model.PublishedTable, c *model.PublishedCell) {
	row := slices.IndexFunc(t.Rows, func(r model.PublishedRow) bool { return r.Name == c.Row })
	if row < 0 {
		row = len(t.Rows)
		t.Rows = append(t.Rows, model.PublishedRow{Name: c.Row})
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

// cell returns the text of a published figure, the measured figure and the verdict.
func cell(b *verdicts.Judge, p *suite.Published) *model.PublishedCell {
	c := documented(b, p)
	measure(b, c)
	judge(b, c)
	return c
}

// documented returns a cell with the document's figure and its ratio, which are in the plan.
func documented(b *verdicts.Judge, p *suite.Published) *model.PublishedCell {
	c := &model.PublishedCell{Published: *p}
	switch {
	case p.Metric == "":
		c.Absent = p.Note
	case p.Baseline != "":
		c.Against, c.PublishedRatio = p.Baseline, &p.Value
		c.Doubt = contradiction(b, p)
	default:
		baseline := baselineOf(b, p.Scenario)
		if base := b.Cells[baseline]; base != nil && b.Cells[p.Scenario] != nil && !verdicts.Comparable(sample.Metric(p.Metric), b.Cells[p.Scenario].Scenario, base.Scenario) {
			c.Why = "both endpoints are on one node, so its CPU is not compared with that of a node that has one endpoint"
		} else if c.PublishedRatio = publishedRatio(b, p, baseline); c.PublishedRatio != nil {
			c.Against = baseline
		}
	}
	return c
}

// derived is the text of a published figure that the document does not print.
const derived = "derived"

// perByte returns a cell with the CPU time per byte that follows from a CPU figure and the
// throughput in the same table; nil if the table lacks one of them. A CPU figure alone depends on how many
// bytes were carried.
func perByte(t *model.PublishedTable, c *model.PublishedCell) *model.PublishedCell {
	metric := map[sample.Metric]sample.Metric{
		sample.SenderCPU: sample.SenderCPUPerByte, sample.SenderCores: sample.SenderCPUPerByte,
		sample.ReceiverCPU: sample.ReceiverCPUPerByte, sample.ReceiverCores: sample.ReceiverCPUPerByte,
	}[sample.Metric(c.Metric)]
	cells := t.Ratios()
	i := slices.IndexFunc(cells, func(o *model.PublishedCell) bool {
		return o.Scenario == c.Scenario && o.Against == c.Against && o.Baseline == "" && throughput(o.Metric)
	})
	if metric == "" || i < 0 || c.Baseline != "" {
		return nil
	}
	ratio := *c.PublishedRatio / *cells[i].PublishedRatio
	d := &model.PublishedCell{Published: c.Published, Against: c.Against, PublishedRatio: &ratio}
	d.Metric, d.Printed, d.Unit, d.Factor, d.Note = string(metric), derived, "ns/B", 1, ""
	name := &d.Column
	if strings.Contains(strings.ToLower(d.Row), "cpu") {
		name = &d.Row
	}
	*name = strings.TrimSuffix(*name, " %") + " per byte"
	return d
}

// throughput reports whether a metric is the throughput, which is the same at both ends of a
// stream.
func throughput(metric string) bool {
	return slices.Contains([]sample.Metric{sample.Throughput, sample.SenderThroughput, sample.ReceiverThroughput}, sample.Metric(metric))
}

// measure sets the measured figure and its ratio, or the reason why there is none.
func measure(b *verdicts.Judge, c *model.PublishedCell) {
	m := sample.Metric(c.Metric)
	if m != "" && c.Baseline == "" {
		if c.Absent = whyNoFigure(b, c.Scenario, m); c.Absent == "" {
			iv := b.Cells[c.Scenario].Summary[m]
			c.Measured = &iv
			if own, ok := b.Cells[c.Scenario].Summary["tool_"+m]; ok && verdicts.OfSide(m) {
				c.ByTool = &own
			}
		}
	}
	if c.PublishedRatio == nil {
		return
	}
	for _, id := range []string{c.Scenario, c.Against} {
		if c.Why = whyNoFigure(b, id, m); c.Why != "" {
			if c.Baseline != "" {
				c.Absent = c.Why
			}
			if why := b.Run.Skipped[id]; why != "" {
				c.Agreement, c.Cause, c.Why = model.NotJudged, why, ""
			}
			return
		}
	}
	over, _, _ := verdicts.Pair(b.Cells[c.Scenario], m, b.Cells[c.Against], m)
	switch p := b.Paired(c.Scenario, c.Against, m); {
	case len(over) == 0:
		c.Why = cmp.Or(b.WithoutCommonBlock(c.Scenario, c.Against), "no block has figures of both scenarios")
	case p == nil:
		c.Why = "there is no ratio: a trial has a figure of zero"
	default:
		c.MeasuredRatio = &p.Ratio
	}
}

// judge compares the two ratios of a cell that has both, unless they cannot be judged.
func judge(b *verdicts.Judge, c *model.PublishedCell) {
	if c.MeasuredRatio == nil {
		return
	}
	if verdict, reason := b.Plan.RulingOf(c.Scenario, c.Against, c.Metric); verdict != "" {
		c.Agreement, c.Cause = model.Agreement(verdict), reason
		return
	}
	if c.Cause = cmp.Or(b.Emulated(c.Scenario, c.Against), full(b, c)); c.Cause != "" {
		c.Agreement = model.NotJudged
		return
	}
	if c.Agreement, c.Why = agree(*c.PublishedRatio, *c.MeasuredRatio); c.Agreement.Explained() {
		c.Cause = b.Plan.CauseOf(c.Scenario, c.Against, c.Metric)
	}
}

// full returns the reason why the CPU time of a side is not compared: in both scenarios the CPUs of that side, or those of the sender,
// were full. It returns "" if they were not full, or if the figure is not a CPU time.
func full(b *verdicts.Judge, c *model.PublishedCell) string {
	m := sample.Metric(c.Metric)
	if !slices.Contains([]sample.Metric{sample.SenderCPU, sample.ReceiverCPU, sample.SenderCores, sample.ReceiverCores}, m) {
		return ""
	}
	both := func(side string) bool { return b.Cells[c.Scenario].Full(side) && b.Cells[c.Against].Full(side) }
	switch {
	case both(m.Side()):
		return fmt.Sprintf("the %s's CPUs are full in both scenarios, with the work of the node and the wire, so this figure says how they share the CPUs; CPU per byte tells more", m.Side())
	case both("sender"):
		return "the sender's CPUs are full in both scenarios, so the receiver's CPU depends on how many bytes the sender could send; CPU per byte tells more"
	}
	return ""
}

// baselineOf returns the baseline of the plan's first comparison of a scenario; "" if
// there is none.
func baselineOf(b *verdicts.Judge, id string) string {
	for _, c := range b.Plan.Comparisons {
		if c.Subject == id {
			return c.Baseline
		}
	}
	return ""
}

// publishedRatio returns the ratio of a figure to the document's figure of the
// baseline in the same unit. It prefers a figure of the same table.
func publishedRatio(b *verdicts.Judge, p *suite.Published, baseline string) *float64 {
	var base *suite.Published
	for i := range b.Plan.Published {
		o := &b.Plan.Published[i]
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
func contradiction(b *verdicts.Judge, p *suite.Published) string {
	var subject, base suite.Published
	for _, o := range slices.Backward(b.Plan.Published) {
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
func whyNoFigure(b *verdicts.Judge, id string, m sample.Metric) string {
	c := b.Cells[id]
	switch {
	case c == nil && b.Plan.Short:
		return "not in the short form"
	case c == nil:
		return "not in this run"
	case b.Run.Skipped[id] != "":
		return "skipped: " + b.Run.Skipped[id]
	case len(c.Counting) == 0:
		return b.Lacks(id)
	}
	if _, ok := c.Summary[m]; !ok {
		return "not measured" + verdicts.NotPinned(c.Scenario, m)
	}
	return ""
}

// Figures pairs each published figure of the plan with the measured one. Measured is nil
// if there is no measured figure.
func Figures(b *verdicts.Judge) []model.Published {
	var list []model.Published
	for _, p := range b.Plan.Published {
		entry := model.Published{Published: p}
		if c := b.Cells[p.Scenario]; c != nil {
			if iv, ok := c.Summary[sample.Metric(p.Metric)]; ok {
				entry.Measured = &iv
			}
		}
		list = append(list, entry)
	}
	return list
}
