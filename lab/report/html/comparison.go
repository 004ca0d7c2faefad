package html

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"windtunnel/lab/report/compare"
	"windtunnel/lab/sample"
)

// comparisonPage is the data of comparison.html.
type comparisonPage struct {
	frame
	Same   bool // nothing that is recorded of machine and plan differs
	Sides  []comparedSide
	Ratios bool
	Alt    string
	Tables []comparedTable
	Notes  []string
	Gates  []string
}

// frame has what every page with charts needs besides the report.
type frame struct {
	Policy, Title         string
	Links                 []Link
	Data, Library, Script template.JS
	Style                 template.CSS
}

// frame returns the frame of a comparison or a trend. data is what the script draws.
func (s Site) frame(title string, data any) (frame, error) {
	text, err := encode(data)
	return frame{Policy: policy(sheet), Title: title, Links: s.Links, Data: text, Library: template.JS(echarts), Script: template.JS(sheet), Style: template.CSS(style)}, err
}

// url returns the URL of a run's report; "" if there is none.
func (s Site) url(run string) string {
	if s.Run == nil {
		return ""
	}
	return s.Run(run)
}

type comparedSide struct {
	Name string // A or B
	Runs []comparedRun
}

type comparedRun struct{ ID, URL, Line string }

type comparedTable struct {
	Title, ID string
	Heads     []string
	Rows      []comparedRow
}

type comparedRow struct {
	Name  string
	Cells []comparedCell
}

type comparedCell struct{ Text, Class string }

// WriteComparison writes a comparison of runs.
func (s Site) WriteComparison(w io.Writer, c *compare.Comparison) error {
	p, err := s.comparison(c)
	if err == nil {
		err = send(w, "comparison.html", p)
	}
	if err != nil {
		return fmt.Errorf("write the comparison of %s and %s as HTML: %w", c.A.ID, c.B.ID, err)
	}
	return nil
}

func (s Site) comparison(c *compare.Comparison) (p *comparisonPage, err error) {
	groups := comparedRatios(c.Values)
	p = &comparisonPage{
		Same: len(c.Environment)+len(c.Plan) == 0, Ratios: len(groups) > 0, Alt: ratioAlt(groups), Notes: c.Notes, Gates: c.GateLines(),
		Sides: []comparedSide{s.comparedSide("A", c.A, c.MoreA), s.comparedSide("B", c.B, c.MoreB)},
	}
	for i, t := range c.Tables() {
		p.Tables = append(p.Tables, comparedTable{t.Title, fmt.Sprintf("h-table-%d", i), t.Heads, comparedRows(t)})
	}
	p.frame, err = s.frame("Comparison of suite "+c.B.Suite, struct {
		Ratios []ratios `json:"ratios,omitempty"`
	}{groups})
	return p, err
}

func (s Site) comparedSide(name string, first compare.RunInfo, more []compare.RunInfo) comparedSide {
	side := comparedSide{Name: name}
	for _, r := range append([]compare.RunInfo{first}, more...) {
		side.Runs = append(side.Runs, comparedRun{r.ID, s.url(r.ID), r.Line()})
	}
	return side
}

// comparedRatios returns the ratios B / A for the chart, by metric.
func comparedRatios(rows []compare.Row) []ratios {
	var list []ratios
	for _, info := range sample.Known() {
		g := ratios{Name: info.Label, Better: info.Better}
		for i := range rows {
			r := &rows[i]
			if r.Metric != info.Metric || r.Ratio == nil {
				continue
			}
			sure := r.Verdict == compare.Better || r.Verdict == compare.Worse || r.Verdict == compare.Differs
			g.Rows = append(g.Rows, dot{
				Subject: "B", Baseline: "A", Label: r.Scenario, paint: paint{Colour: 1}, Distinct: sure,
				Median: r.Ratio.Median, Low: r.Ratio.Low, High: r.Ratio.High, Text: r.RatioText(), Mark: mark{Word: r.Says()},
			})
		}
		if len(g.Rows) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// comparedRows returns the rows of a table. The last cell has the tone of the verdict.
func comparedRows(t compare.Table) (rows []comparedRow) {
	for _, r := range t.Rows {
		row := comparedRow{Name: r.Cells[0]}
		for i, text := range r.Cells[1:] {
			cell := comparedCell{Text: text}
			switch last := i == len(r.Cells)-2; {
			case last && r.Verdict != "":
				cell.Class = strings.TrimSpace("says " + verdictTone(r.Verdict))
			case r.Verdict != "" && i > 0:
				cell.Class = "n"
			}
			row.Cells = append(row.Cells, cell)
		}
		rows = append(rows, row)
	}
	return rows
}

func verdictTone(v compare.Verdict) string {
	switch v {
	case compare.Better:
		return "better"
	case compare.Worse:
		return "worse"
	}
	return ""
}
