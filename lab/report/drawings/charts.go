package drawings

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"windtunnel/internal/lists"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

func (b *builder) charts(bars []panelGroup) document.Charts {
	var c document.Charts
	for _, g := range bars {
		c.Panels = append(c.Panels, g.Panels...)
	}
	c.Ratios = b.ratios()
	c.Series = b.series()
	c.Ladders, c.Curves = b.ladders(), b.curves()
	for _, system := range b.cells() {
		c.Cells = append(c.Cells, system.Charts...)
	}
	if all := b.strips(); len(all.Rows) > 0 {
		c.Trials = &all
	}
	return c
}

// panelGroup has the panels of one table: throughput or transactions, CPU, and latency.
type panelGroup struct {
	ID, Heading, Title string
	Few                bool // a row has fewer trials than a 95 % interval needs
	Panels             []document.Panel
}

func (b *builder) panelGroups() []panelGroup {
	return lists.Map(tables.Of(b.r), b.panels)
}

func (b *builder) panels(f tables.Figures) panelGroup {
	g := panelGroup{ID: "streams", Heading: "Throughput and CPU", Title: f.Title}
	title, main := "Throughput", sample.Throughput
	if f.Exchange {
		g.ID, g.Heading, title, main = "exchange", "Transactions and latency", "Transactions", sample.Transactions
	}
	g.Few = slices.ContainsFunc(f.Rows, func(s *model.Scenario) bool { return s.Trials > 0 && s.Trials < stats.MinimumTrials(stats.Level) })
	if p, ok := b.panel(f, document.Panel{ID: g.ID + "-main", Kind: "bars", Title: title, Sides: []string{""}}, main); ok {
		g.Panels = append(g.Panels, p)
	}
	sides := []string{"sender", "receiver"}
	if p, ok := b.panel(f, document.Panel{ID: g.ID + "-cpu", Kind: "bars", Title: "CPU of the nodes", Sides: sides, Beside: len(g.Panels) > 0, Max: 100}, sample.SenderCPU, sample.ReceiverCPU); ok {
		g.Panels = append(g.Panels, p)
	}
	p := document.Panel{ID: g.ID + "-latency", Kind: "latency", Title: "Latency of a round trip"}
	var metrics []sample.Metric
	for _, q := range model.Percentiles {
		p.Sides, metrics = append(p.Sides, q.Name), append(metrics, q.Metric)
	}
	if p, ok := b.panel(f, p, metrics...); ok {
		g.Panels = append(g.Panels, p)
	}
	return g
}

// panel sets the rows of p, with one metric for each side. ok is false if no row has any
// of the metrics.
func (b *builder) panel(f tables.Figures, p document.Panel, metrics ...sample.Metric) (document.Panel, bool) {
	scale, ok := tables.ScaleOfRows(f.Rows, metrics...)
	p.Unit, p.By = scale.Unit, scale.By
	var said []string
	for i, s := range f.Rows {
		r := document.PanelRow{ID: s.ID, Label: f.Names[i], Paint: b.paints[s.ID], Absent: s.Absent(), Bars: []*document.Bar{}}
		for j, m := range metrics {
			iv := s.Interval(m)
			switch {
			case iv == nil && p.Kind == "bars":
				r.Bars = append(r.Bars, nil)
				continue
			case iv == nil:
				continue
			}
			bar := barOf(iv, scale)
			if p.Kind == "bars" {
				bar.Points = points(s, m)
			} else {
				bar.Name, bar.Text = p.Sides[j], scale.Print(iv.Median)
			}
			r.Bars = append(r.Bars, bar)
			if p.Kind == "bars" || m == sample.LatencyP50 || m == sample.LatencyP99 {
				said = append(said, strings.Join(strings.Fields(f.Names[i]+" "+p.Sides[j]+" "+bar.Text), " "))
			}
		}
		p.Rows = append(p.Rows, r)
	}
	p.Alt = fmt.Sprintf("%s in %s, median by scenario: %s. The tables below have all figures.", p.Title, p.Unit, strings.Join(said, ", "))
	return p, ok
}

// points returns block and value of each trial that counts.
func points(s *model.Scenario, m sample.Metric) (list [][2]float64) {
	for _, sm := range s.Counting() {
		if v, ok := sm.Metrics[m]; ok {
			list = append(list, [2]float64{float64(sm.Block + 1), digits(v, 5)})
		}
	}
	return list
}

// ratioMetrics are the metrics in the chart of ratios.
var ratioMetrics = []sample.Metric{
	sample.Throughput, sample.Transactions, sample.LatencyP50, sample.LatencyP99,
	sample.SenderCPUPerByte, sample.ReceiverCPUPerByte,
}

func (b *builder) ratios() []document.Ratios {
	var list []document.Ratios
	for _, m := range ratioMetrics {
		info, _ := sample.Describe(m)
		g := document.Ratios{Name: info.Label, Better: info.Better}
		for i := range b.r.Comparisons {
			if c := &b.r.Comparisons[i]; c.Metric == m {
				if d, ok := b.dot(c); ok {
					g.Rows = append(g.Rows, d)
				}
			}
		}
		slices.SortStableFunc(g.Rows, func(a, b document.Dot) int { return model.After(a.Noisy, b.Noisy) })
		if len(g.Rows) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// dot returns a comparison as a dot of the chart. ok is false for metrics that the chart
// omits. One is the throughput of request/response: it follows from the transactions.
func (b *builder) dot(c *model.Comparison) (d document.Dot, ok bool) {
	if _, ok := b.keyName(c); !ok && c.Metric != sample.LatencyP99 {
		return document.Dot{}, false
	}
	d = document.Dot{
		Subject: c.Subject, Baseline: c.Baseline, Paint: b.paints[c.Subject],
		Median: c.Ratio.Median, Low: c.Ratio.Low, High: c.Ratio.High, Distinct: c.Distinct,
		Text: quantity.RatioText(c.Ratio), Mark: markOfComparison(c), Noisy: c.Verdict == model.TooNoisy,
	}
	d.Label = suite.Group(c.Subject) + " / " + suite.Group(c.Baseline)
	if !b.oneWorkload(c) {
		d.Label = c.Subject + " / " + c.Baseline
	}
	return d, true
}

// oneWorkload reports whether the groups of subject and baseline identify a comparison:
// they differ, and no other comparison of the metric has the same groups. Then the label
// of the dot needs no workload.
func (b *builder) oneWorkload(c *model.Comparison) bool {
	for i := range b.r.Comparisons {
		o := &b.r.Comparisons[i]
		if o != c && o.Metric == c.Metric && suite.Group(o.Subject) == suite.Group(c.Subject) && suite.Group(o.Baseline) == suite.Group(c.Baseline) {
			if _, shown := b.keyName(o); shown || o.Metric == sample.LatencyP99 {
				return false
			}
		}
	}
	return suite.Group(c.Subject) != suite.Group(c.Baseline)
}

// digits rounds to n significant digits, to make the page smaller.
func digits(v float64, n int) float64 {
	if v == 0 {
		return 0
	}
	step := math.Pow10(n - 1 - int(math.Floor(math.Log10(math.Abs(v)))))
	if math.IsInf(step, 0) || step == 0 {
		return v
	}
	return math.Round(v*step) / step
}

// colours is the number of colours in style.css without the neutral --s0.
const colours = 7

// paints returns the colour of every scenario, by ID. The host's own stack has the
// neutral colour. The other systems get colours in the order in which they appear.
func paints(r *model.Report) map[string]document.Paint {
	bySystem := map[string]int{"raw": 0}
	list := make(map[string]document.Paint, len(r.Scenarios))
	next := 0
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if _, ok := bySystem[s.System]; !ok {
			bySystem[s.System] = 1 + next%colours
			next++
		}
		list[s.ID] = document.Paint{Colour: bySystem[s.System], Light: s.Placement == string(suite.Colocated)}
	}
	return list
}
