package suite

import "slices"

// Compared divides the IDs of the plan's scenarios into groups. Comparisons, ladders, hypotheses
// and published figures compare two scenarios. Then both are in one group. A scenario that is
// compared with no other is a group of its own.
func (p *Plan) Compared() [][]string {
	group := map[string]int{} // number of the group by ID, from 1
	for i, sc := range p.Scenarios {
		group[sc.ID] = i + 1
	}
	join := func(first string, ids ...string) {
		for _, id := range ids {
			old := group[id]
			for other, g := range group {
				if g == old && group[first] > 0 {
					group[other] = group[first]
				}
			}
		}
	}
	for _, c := range p.Comparisons {
		join(c.Baseline, c.Subject)
	}
	for _, l := range p.Ladders {
		join(l.Steps[0], l.Steps[1:]...)
	}
	for _, h := range p.Hypotheses {
		if h.Baseline != "" {
			join(h.Baseline, h.Subjects...)
		}
	}
	for _, f := range p.Published {
		if f.Baseline != "" {
			join(f.Baseline, f.Scenario)
		}
	}
	groups := make([][]string, len(p.Scenarios)+1)
	for _, sc := range p.Scenarios {
		groups[group[sc.ID]] = append(groups[group[sc.ID]], sc.ID)
	}
	return slices.DeleteFunc(groups, func(g []string) bool { return len(g) == 0 })
}
