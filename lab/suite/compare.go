package suite

import (
	"fmt"
	"slices"
)

// comparisons resolves ids and groups into pairs of scenarios.
func (x *expansion) comparisons() {
	for _, c := range x.s.comparisons.V {
		for _, subject := range c.V.subjects.V {
			for _, p := range x.pairs(c.V.baseline, subject) {
				if slices.ContainsFunc(x.plan.Comparisons, func(o Comparison) bool { return o.Baseline == p.Baseline && o.Subject == p.Subject }) {
					x.j.fail(subject.Pos, fmt.Sprintf("%q is compared with %q twice", p.Subject, p.Baseline), "remove one of the two")
					continue
				}
				if v, w := x.workload(p.Baseline), x.workload(p.Subject); v.Kind.Stream() && w.Kind.Exchange() || v.Kind.Exchange() && w.Kind.Stream() {
					x.j.fail(subject.Pos, fmt.Sprintf("%q (%s) cannot be compared with %q (%s)", p.Subject, w, p.Baseline, v), "compare streams with streams, and request/response with request/response")
					continue
				}
				p.Title = c.V.title.V
				x.plan.Comparisons = append(x.plan.Comparisons, p)
			}
		}
	}
}

// pairs returns the pairs of scenarios that a baseline and a subject name. Two ids are
// one pair. Two groups give one pair for each part after the "/" that both groups
// have. If the plan is partial, pairs omits missing scenarios without an error.
func (x *expansion) pairs(baseline, subject at[string]) (found []Comparison) {
	base, isGroup, ok := x.lookUp(baseline)
	if !ok {
		return nil
	}
	subj, subjectIsGroup, ok := x.lookUp(subject)
	if !ok {
		return nil
	}
	if baseline.V == subject.V {
		x.j.fail(subject.Pos, fmt.Sprintf("%q is compared with itself", subject.V), "name another scenario, or run the same system under two ids")
		return nil
	}
	if isGroup != subjectIsGroup {
		x.j.fail(subject.Pos, fmt.Sprintf("baseline %q and subject %q are not both scenarios or both groups", baseline.V, subject.V), "name two ids, or two groups")
		return nil
	}
	for _, s := range subj {
		for _, b := range base {
			if !isGroup || Part(s) == Part(b) {
				found = append(found, Comparison{Baseline: b, Subject: s})
			}
		}
	}
	if found == nil && !x.partial {
		x.j.fail(subject.Pos, fmt.Sprintf("groups %q and %q have no scenario with the same part after the \"/\"", baseline.V, subject.V),
			"scenarios: "+enumerate(append(base, subj...)))
	}
	return found
}

// lookUp returns the scenario with the id name, or the scenarios of the group name.
func (x *expansion) lookUp(name at[string]) (ids []string, isGroup, ok bool) {
	if name.V == "" {
		return nil, false, false // unreadable; already reported
	}
	var known []string
	for _, sc := range x.plan.Scenarios {
		if sc.ID == name.V {
			return []string{sc.ID}, false, true
		}
		g := Group(sc.ID)
		if g == name.V {
			ids = append(ids, sc.ID)
		}
		if !slices.Contains(known, g) {
			known = append(known, g)
		}
		if g != sc.ID {
			known = append(known, sc.ID)
		}
	}
	if len(ids) > 0 {
		return ids, true, true
	}
	if !x.partial {
		x.j.fail(name.Pos, fmt.Sprintf("there is no scenario or group %q", name.V), Suggest(name.V, "scenarios and groups", known))
	}
	return nil, false, false
}

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
