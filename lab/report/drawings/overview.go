package drawings

import (
	"cmp"
	"slices"
	"strings"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// overview is the table of the first screen. It has one row for each system, with the
// figures of one stream workload and one request/response workload.
type overview struct {
	Columns []overviewColumn
	Rows    []overviewRow
}

type overviewColumn struct{ Name, Under string }

type overviewRow struct {
	Name    string // group of the scenarios
	Against string // "against raw", "baseline", or the reason why there are no figures
	base    string // group of the baseline
	Paint   document.Paint
	Cells   []overviewCell // one for each column
}

// overviewCell is one figure. The zero cell was not measured.
type overviewCell struct {
	Text   string
	Share  int    // length of the bar, in percent of the column's longest
	Change string // from the baseline: "−21.6 %", "~ no difference"
	Tone   string // as in cardLine
}

// overview makes the table of the first screen; nil without figures.
func (b *builder) overview() *overview {
	stream, exchange := b.usual(false), b.usual(true)
	metrics := []sample.Metric{sample.Throughput, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte, sample.LatencyP50}
	if len(stream) == 0 {
		metrics = []sample.Metric{sample.Transactions, sample.SenderCPU, sample.ReceiverCPU, sample.LatencyP50}
	}
	out := &overview{}
	for i := range b.r.Scenarios {
		s := &b.r.Scenarios[i]
		group := suite.Group(s.ID)
		if slices.ContainsFunc(out.Rows, func(r overviewRow) bool { return r.Name == group }) || stream[group] == nil && exchange[group] == nil {
			continue
		}
		of := cmp.Or(stream[group], exchange[group])
		row := overviewRow{Name: group, Paint: b.paints[of.ID], Against: of.Absent()}
		if c := b.r.Ratio(of.ID, ""); c != nil {
			_, baseline, _ := model.Names(c.Subject, c.Baseline)
			row.Against, row.base = "against "+baseline, suite.Group(c.Baseline)
		} else if slices.ContainsFunc(b.r.Comparisons, func(c model.Comparison) bool { return c.Baseline == of.ID }) {
			row.Against = "baseline"
		}
		out.Rows = append(out.Rows, row)
	}
	for _, m := range metrics {
		scenarios := stream
		if m == sample.LatencyP50 || len(stream) == 0 {
			scenarios = exchange
		}
		out.column(b.r, m, scenarios)
	}
	if len(out.Columns) == 0 {
		return nil
	}
	return out
}

// usual returns the scenario of each group in the workload that most groups have, of the
// first if several are as frequent.
func (b *builder) usual(exchange bool) map[string]*model.Scenario {
	of := make(map[string]map[string]*model.Scenario)
	best := ""
	for i := range b.r.Scenarios {
		if s := &b.r.Scenarios[i]; s.Workload.Kind.Exchange() == exchange {
			part := suite.Part(s.ID)
			if of[part] == nil {
				of[part] = make(map[string]*model.Scenario)
			}
			of[part][suite.Group(s.ID)] = s
			if len(of[part]) > len(of[best]) {
				best = part
			}
		}
	}
	return of[best]
}

// column adds a column, unless no scenario has the metric.
func (o *overview) column(r *model.Report, m sample.Metric, scenarios map[string]*model.Scenario) {
	var medians []float64
	part := ""
	for _, row := range o.Rows {
		if s := scenarios[row.Name]; s != nil {
			part = suite.Part(s.ID)
			if iv := s.Interval(m); iv != nil {
				medians = append(medians, iv.Median)
			}
		}
	}
	if len(medians) == 0 {
		return
	}
	scale, longest := quantity.ScaleOf(m, medians...), slices.Max(medians)
	head := overviewColumn{Name: strings.TrimSuffix(m.Label(), " per byte"), Under: scale.Unit}
	if part != "" && m.Side() == "" {
		head.Under += ", " + part
	}
	o.Columns = append(o.Columns, head)
	for i := range o.Rows {
		row := &o.Rows[i]
		cell := overviewCell{}
		if s := scenarios[row.Name]; s != nil && s.Interval(m) != nil {
			iv := s.Interval(m)
			cell.Text, _ = scale.Figure(*iv)
			if longest > 0 {
				cell.Share = int(100*iv.Median/longest + 0.5)
			}
			if c := r.Ratio(s.ID, m); c != nil && suite.Group(c.Baseline) == row.base {
				cell.Change, cell.Tone = changed(c)
			}
		}
		row.Cells = append(row.Cells, cell)
	}
}

// changed returns the change from the baseline in a few words, and its tone.
func changed(c *model.Comparison) (text, tone string) {
	switch c.Verdict {
	case model.Alike:
		return "~ no difference", "none"
	case model.TooNoisy:
		return "! too noisy", "none"
	case model.Suggested:
		return change(c.Ratio.Median) + " ?", "none"
	case model.TooFew:
		return change(c.Ratio.Median) + " …", "none"
	}
	return change(c.Ratio.Median), tables.Tone(c.Metric, c.Verdict, c.Ratio.Median-1)
}
