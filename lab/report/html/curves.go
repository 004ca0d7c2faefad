package html

import (
	"fmt"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/tables"
)

// curve is a chart with a line for each system. Figures are in SI units; By is the factor from
// Unit to the SI unit.
type curve struct {
	ID       string      `json:"id"`
	Title    string      `json:"title"`
	Property string      `json:"property"`
	Values   []string    `json:"values"`
	Unit     string      `json:"unit"`
	By       float64     `json:"by"`
	Lines    []curveLine `json:"lines"`
	Alt      string      `json:"-"`
}

type curveLine struct {
	Name string `json:"name"`
	paint
	Dash int    `json:"dash"` // number of lines before it that have the same colour
	Bars []*bar `json:"bars"` // one for each value, nil if not measured
}

func (b *builder) curves() (list []curve) {
	for i, c := range tables.Curves(b.r) {
		scale := c.Scale()
		out := curve{ID: fmt.Sprintf("curve-%d", i), Title: phrase.Capital(c.Metric.Label()), Property: c.Property, Values: c.Values, Unit: scale.Unit, By: scale.By}
		var said []string
		drawn := map[paint]int{}
		for _, l := range c.Lines {
			line := curveLine{Name: l.Group}
			for j, s := range l.Scenarios {
				if s == nil {
					line.Bars = append(line.Bars, nil)
					continue
				}
				line.paint = b.paints[s.ID]
				bar := barOf(s.Interval(c.Metric), scale)
				line.Bars = append(line.Bars, bar)
				said = append(said, fmt.Sprintf("%s %s %s", l.Group, c.Values[j], bar.Text))
			}
			line.Dash = drawn[line.paint]
			drawn[line.paint]++
			out.Lines = append(out.Lines, line)
		}
		out.Alt = fmt.Sprintf("%s in %s by %s: %s.", out.Title, out.Unit, out.Property, strings.Join(said, ", "))
		list = append(list, out)
	}
	return list
}
