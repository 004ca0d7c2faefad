package suite

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// keep removes every scenario that no filter selects, and every entry that refers to
// such a scenario.
func (p *Plan) keep(filters []string) error {
	wanted := map[string]bool{}
	for _, f := range filters {
		f = strings.TrimSpace(f)
		found := false
		for _, sc := range p.Scenarios {
			match, err := Matches(f, sc.ID)
			if err != nil {
				return fmt.Errorf("suite %s: the scenario pattern %q cannot be read (%w); write an id, a group, or a pattern with *, ? and [a-z]", p.Suite, f, err)
			}
			if match {
				found, wanted[sc.ID] = true, true
			}
		}
		if !found {
			return p.unmatched(f)
		}
	}
	if len(filters) > 0 {
		p.Scenarios = slices.DeleteFunc(p.Scenarios, func(sc Scenario) bool { return !wanted[sc.ID] })
	}
	kept := map[string]bool{}
	for _, sc := range p.Scenarios {
		kept[sc.ID] = true
	}
	p.Comparisons = slices.DeleteFunc(p.Comparisons, func(c Comparison) bool { return !kept[c.Baseline] || !kept[c.Subject] })
	p.Ladders = keepLadders(p.Ladders, kept)
	p.Hypotheses = keepHypotheses(p.Hypotheses, kept)
	p.keepPublished(kept)
	return nil
}

// keepLadders removes steps whose scenarios are not in kept, and then ladders with
// fewer than two steps. The step after a removed step includes the change of the
// removed step, and has both names.
func keepLadders(ladders []Ladder, kept map[string]bool) (out []Ladder) {
	for _, l := range ladders {
		rest := Ladder{Title: l.Title}
		var lost []string
		for i, step := range l.Steps {
			if !kept[step] {
				lost = append(lost, l.Names[i])
				continue
			}
			called := l.Names[i]
			if len(rest.Steps) > 0 {
				called = strings.Join(append(lost, called), " + ")
			}
			rest.Steps, rest.Names, lost = append(rest.Steps, step), append(rest.Names, called), nil
		}
		if len(rest.Steps) >= leastSteps {
			out = append(out, rest)
		}
	}
	return out
}

// keepHypotheses removes subjects that are not in kept, and then hypotheses whose baseline
// is not in kept or that have no subject.
func keepHypotheses(hypotheses []Hypothesis, kept map[string]bool) (out []Hypothesis) {
	for _, h := range hypotheses {
		h.Subjects = slices.DeleteFunc(h.Subjects, func(id string) bool { return !kept[id] })
		if (h.Baseline == "" || kept[h.Baseline]) && len(h.Subjects) > 0 {
			out = append(out, h)
		}
	}
	return out
}

// Matches reports whether filter selects the scenario id. The filter is the id, its
// group, or a pattern for the id or the group.
func Matches(filter, id string) (bool, error) {
	g := Group(id)
	if filter == id || filter == g {
		return true, nil
	}
	whole, err := path.Match(filter, id)
	if err != nil || whole || strings.Contains(filter, "/") {
		return whole, err
	}
	return path.Match(filter, g)
}

func (p *Plan) unmatched(filter string) error {
	ids := p.IDs()
	hint := ""
	anyGroup := "*/" + strings.TrimPrefix(filter, "*")
	if slices.ContainsFunc(ids, func(id string) bool { ok, _ := path.Match(anyGroup, id); return ok }) {
		hint = fmt.Sprintf("did you mean %q? A * does not match \"/\"; ", anyGroup)
	} else if near := Nearest(filter, NamesFor(ids)); near != "" {
		hint = fmt.Sprintf("did you mean %q? ", near)
	}
	return fmt.Errorf("suite %s: there is no scenario %q%s; %sscenarios: %s", p.Suite, clip(filter), p.inShortForm(), hint, enumerate(ids))
}
