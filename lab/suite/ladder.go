package suite

import (
	"fmt"
	"slices"
	"strings"
)

// step is one entry of a ladder's list, with the ids of its scenarios.
type step struct {
	at[string]
	name string
	ids  []string // one ID, or the IDs of the group
}

// ladders adds the suite's ladders. It replaces groups by the ids of their scenarios. Ids give one
// ladder. Groups give one for each part after the "/".
func (x *expansion) ladders() {
	for _, l := range x.s.ladders.V {
		steps, isGroup, ok := x.steps(l.V)
		if !ok {
			continue
		}
		if !isGroup {
			x.addLadder(l.V.title.V, "", steps)
			continue
		}
		parts := partsOf(steps)
		for _, part := range parts {
			title := l.V.title.V
			if len(parts) > 1 {
				title = strings.TrimSpace(title + " (" + part + ")")
			}
			x.addLadder(title, part, steps)
		}
	}
}

// steps finds the scenarios of a ladder's entries. It returns false if fewer than two
// steps remain, or after an error. If the plan is partial, a step may be missing
// without an error.
func (x *expansion) steps(l ladderSpec) (steps []step, isGroup, ok bool) {
	if l.names.Set && len(l.names.V) > 0 && len(l.names.V) != len(l.steps.V) {
		x.j.fail(l.names.Pos, fmt.Sprintf("there are %d names for %d steps", len(l.names.V), len(l.steps.V)), "name every step, or none")
		return nil, false, false
	}
	for i, s := range l.steps.V {
		ids, group, found := x.lookUp(s)
		if !found {
			if !x.partial {
				return nil, false, false
			}
			continue
		}
		if slices.ContainsFunc(steps, func(o step) bool { return o.V == s.V }) {
			x.j.fail(s.Pos, fmt.Sprintf("%q is a step of this ladder twice", s.V), "remove one of the two")
			return nil, false, false
		}
		if len(steps) > 0 && group != isGroup {
			x.j.fail(s.Pos, fmt.Sprintf("steps %q and %q are not both scenarios or both groups", steps[0].V, s.V), "name ids only, or groups only")
			return nil, false, false
		}
		called := s.V
		if i < len(l.names.V) {
			called = l.names.V[i].V
		}
		steps, isGroup = append(steps, step{s, called, ids}), group
	}
	return steps, isGroup, len(steps) >= leastSteps
}

// partsOf lists the parts after the "/" of all groups.
func partsOf(steps []step) (parts []string) {
	for _, s := range steps {
		for _, id := range s.ids {
			if part := Part(id); !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// addLadder adds the ladder of one part after the "/". If part is "", the steps are
// ids.
func (x *expansion) addLadder(title, part string, steps []step) {
	l := Ladder{Title: title}
	for _, s := range steps {
		id := s.ids[0]
		if part != "" {
			id = s.V + "/" + part
		}
		if !slices.Contains(s.ids, id) {
			if !x.partial {
				x.j.fail(s.Pos, fmt.Sprintf("group %q has no %q, which another step of this ladder has", s.V, part),
					fmt.Sprintf("add the scenario %q, or make ladders of scenarios that there are: %s", id, enumerate(s.ids)))
			}
			return
		}
		if len(l.Steps) > 0 && !x.sameTraffic(l.Steps[0], id) {
			x.j.fail(s.Pos, fmt.Sprintf("%q has other traffic (%s) than %q (%s)", id, x.workload(id), l.Steps[0], x.workload(l.Steps[0])),
				"each step of a ladder changes one thing: let all its steps have the same workload")
			return
		}
		l.Steps, l.Names = append(l.Steps, id), append(l.Names, s.name)
	}
	x.plan.Ladders = append(x.plan.Ladders, l)
}

// sameTraffic reports whether the workloads of two scenarios are equal except for
// their names.
func (x *expansion) sameTraffic(a, b string) bool {
	v, w := x.workload(a), x.workload(b)
	v.Name, w.Name = "", ""
	return v == w
}

// workload returns the workload of a scenario of the plan.
func (x *expansion) workload(id string) Workload {
	i := slices.IndexFunc(x.plan.Scenarios, func(sc Scenario) bool { return sc.ID == id })
	return x.plan.Scenarios[i].Workload
}
