package suite

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// shortSpec is a suite's short form: its changes for a run of a few minutes. Systems,
// traffic and comparisons remain those of the suite.
type shortSpec struct {
	trials    at[int]
	timing    timingSpec
	scenarios at[[]at[string]]
	tool      at[string]
}

var shortKeys = mapping[shortSpec]{
	what: "a short form",
	doc:  "What `run --short` changes: a form of the suite that takes minutes, for people in a hurry and for CI.",
	fields: []field[shortSpec]{
		bind("trials", number(1, mostTrials), func(s *shortSpec) *at[int] { return &s.trials }, "Trials of each scenario; a precision of the suite does not apply.").must(),
		set("timing", timingKeys, func(s *shortSpec) *timingSpec { return &s.timing }, "Overrides the timing of suite, workloads and scenarios key by key."),
		bind("scenarios", oneOrMore[string](pattern), func(s *shortSpec) *at[[]at[string]] { return &s.scenarios }, "Scenarios that the short form keeps: ids, groups or patterns; default is all."),
		bind("tool", name, func(s *shortSpec) *at[string] { return &s.tool }, "The traffic program of every scenario."),
	},
}

// withShortForm adds the settings of the suite's short form to the options. Options
// that are already set override the short form.
func (o ExpandOptions) withShortForm(s *spec) ExpandOptions {
	if !o.Short {
		return o
	}
	short := s.short.V
	o.Tool = cmp.Or(o.Tool, short.tool.V)
	o.Trials = cmp.Or(o.Trials, short.trials.V)
	return o
}

// checkShort returns an error if the options ask for the short form of a suite that
// has none.
func (o ExpandOptions) checkShort(s *spec) error {
	if !o.Short || s.short.Set {
		return nil
	}
	plan := expand(&journal{}, s, ExpandOptions{}, true)
	return fmt.Errorf("it has no short form (the complete suite takes about %s); add a block \"short:\" with the key trials, or use --trials, --duration and --scenario",
		plan.Estimate().Round(time.Second))
}

// short reports scenarios of the block short that the suite does not have.
func (x *expansion) short() {
	for _, f := range x.s.short.V.scenarios.V {
		if f.V == "" {
			continue // unreadable; already reported
		}
		if !x.j.readable(f) {
			continue
		}
		found := slices.ContainsFunc(x.plan.Scenarios, func(sc Scenario) bool {
			match, err := Matches(f.V, sc.ID)
			return err == nil && match
		})
		if !found {
			x.j.fail(f.Pos, fmt.Sprintf("there is no scenario %q", f.V), Suggest(f.V, "scenarios and groups", NamesFor(x.plan.IDs())))
		}
	}
}

// keepShort drops the scenarios that the short form omits.
func (p *Plan) keepShort(s *spec) error {
	var kept []string
	for _, f := range s.short.V.scenarios.V {
		kept = append(kept, f.V)
	}
	return p.keep(kept)
}

// NamesFor returns the names that a filter accepts besides patterns: the groups of
// ids, and ids.
func NamesFor(ids []string) []string {
	var names []string
	for _, id := range ids {
		for _, name := range []string{Group(id), id} {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// inShortForm returns the end of a message about an unknown scenario. It says that p
// is a short form, because the complete suite may have the scenario.
func (p *Plan) inShortForm() string {
	if !p.Short {
		return ""
	}
	return " in the short form"
}

// form names the plan and its form: "contrail-windows (short form)".
func (p *Plan) form() string {
	if p.Short {
		return p.Suite + " (short form)"
	}
	return p.Suite
}

// checkShortForm reports errors that occur only in the expansion of the short form.
func checkShortForm(j *journal, s *spec) {
	if s.short.Set && j.calls == 0 {
		expand(j, s, ExpandOptions{Short: true}.withShortForm(s), true)
	}
}
