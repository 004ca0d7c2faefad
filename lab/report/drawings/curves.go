package drawings

import (
	"fmt"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/tables"
)

func (b *builder) curves() (list []document.Curve) {
	for i, c := range tables.Curves(b.r) {
		scale := c.Scale()
		out := document.Curve{ID: fmt.Sprintf("curve-%d", i), Title: phrase.Capital(c.Metric.Label()), Property: c.Property, Values: c.Values, Unit: scale.Unit, By: scale.By}
		var said []string
		drawn := map[document.Paint]int{}
		for _, l := range c.Lines {
			line := document.CurveLine{Name: l.Group}
			for j, s := range l.Scenarios {
				if s == nil {
					line.Bars = append(line.Bars, nil)
					continue
				}
				line.Paint = b.paints[s.ID]
				bar := barOf(s.Interval(c.Metric), scale)
				line.Bars = append(line.Bars, bar)
				said = append(said, fmt.Sprintf("%s %s %s", l.Group, c.Values[j], bar.Text))
			}
			line.Dash = drawn[line.Paint]
			drawn[line.Paint]++
			out.Lines = append(out.Lines, line)
		}
		out.Alt = fmt.Sprintf("%s in %s by %s: %s.", out.Title, out.Unit, out.Property, strings.Join(said, ", "))
		list = append(list, out)
	}
	return list
}
