package html

import (
	"windtunnel/lab/report/model"
	"windtunnel/lab/suite"
)

// colours is the number of colours in style.css without the neutral --s0.
const colours = 7

// paints returns the colour of every scenario, by ID. The host's own stack has the
// neutral colour. The other systems get colours in the order in which they appear.
func paints(r *model.Report) map[string]paint {
	bySystem := map[string]int{"raw": 0}
	list := make(map[string]paint, len(r.Scenarios))
	next := 0
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if _, ok := bySystem[s.System]; !ok {
			bySystem[s.System] = 1 + next%colours
			next++
		}
		list[s.ID] = paint{Colour: bySystem[s.System], Light: s.Placement == string(suite.Colocated)}
	}
	return list
}
