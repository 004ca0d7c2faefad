package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// pairing has both sides and their common scenarios.
type pairing struct {
	a, b    group
	history []group
	opts    Options
	common  []string // ids of scenarios with the same definition on both sides
	leftOut []LeftOut
	ids     []string // the requested ones of common
}

// choose finds the scenarios to compare.
func (p *pairing) choose() error {
	before, after := p.a.first().side, p.b.first().side
	for _, g := range []group{p.a, p.b} {
		for _, c := range g {
			if err := p.belongs(c, g.first()); err != nil {
				return err
			}
		}
	}
	p.common, p.leftOut = common(before, after)
	if len(p.common) == 0 {
		return fmt.Errorf("%sno scenario is in both: A has %s, B has %s; name two runs of one suite on one testbed", apart(before, after, p.leftOut), scenarioNames(before), scenarioNames(after))
	}
	var err error
	if p.ids, err = selection(p.opts.Scenarios, p.common); err != nil {
		return err
	}
	if p.opts.Gates == nil {
		return nil
	}
	return p.opts.Gates.file.Bind(union(before, after))
}

// belongs returns an error for a run without figures, and for a run that is not
// of the same software as the first one of its side.
func (p *pairing) belongs(c, first *columns) error {
	info := c.info()
	if info.Trials == 0 && len(c.side.Plan.Scenarios) > 0 {
		return fmt.Errorf("no trial of run %s counts (%s); run the suite again", info.ID, c.troubles())
	}
	if other := otherMachine(environments(first.side.Run.Environment, c.side.Run.Environment)); len(other) > 0 && !p.opts.AcrossMachines {
		return fmt.Errorf("runs %s and %s of one side are from different machines (%s)", first.side.Run.ID, info.ID, other[0].Name)
	}
	if other := otherTrials(options(first.side.Run.Options, c.side.Run.Options)); len(other) > 0 {
		return fmt.Errorf("runs %s and %s of one side count different trials (%s)", first.side.Run.ID, info.ID, changes(other))
	}
	for _, id := range first.side.Plan.IDs() {
		if then := c.side.scenario(id); then != nil && len(definition(*first.side.scenario(id), *then)) > 0 {
			return fmt.Errorf("runs %s and %s of one side define %s differently", first.side.Run.ID, info.ID, id)
		}
	}
	return nil
}

func union(a, b *Side) []string {
	var ids []string
	for _, s := range []*Side{b, a} {
		for i := range s.Plan.Scenarios {
			if id := s.Plan.Scenarios[i].ID; !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func scenarioNames(s *Side) string {
	if len(s.Plan.Scenarios) == 0 {
		return "none"
	}
	return phrase.Some(s.Plan.IDs(), 6)
}

// apart says why two runs have no common scenario, with a colon; "" if there is no known reason.
func apart(a, b *Side, out []LeftOut) string {
	before, after := a.Run.Options.Form(), b.Run.Options.Form()
	differ := func(what, a, b string) string { return fmt.Sprintf("the runs %s, A %s and B %s: ", what, a, b) }
	const here = "network namespaces of one machine"
	switch machine := otherMachine(environments(a.Run.Environment, b.Run.Environment)); {
	case a.Run.Suite != b.Run.Suite:
		return differ("are of different suites", "of "+a.Run.Suite, "of "+b.Run.Suite)
	case before.Testbed != after.Testbed:
		return differ("have different testbeds", cmp.Or(before.Testbed, here), cmp.Or(after.Testbed, here))
	case len(machine) > 0:
		return fmt.Sprintf("%s (%s): ", errOtherMachine, changes(machine))
	case before.Flags != after.Flags:
		return differ("have different flags", cmp.Or(before.Flags, "none"), cmp.Or(after.Flags, "none"))
	}
	for _, l := range out {
		if strings.HasPrefix(l.Reason, otherwise) {
			return fmt.Sprintf("the runs define all scenarios differently (%s: %s): ", l.Scenario, l.Reason)
		}
	}
	return ""
}

// wanted reports whether a metric of a scenario is to be compared.
func (p *pairing) wanted(id string, m sample.Metric) bool {
	if !slices.Contains(p.ids, id) {
		return false
	}
	if p.opts.Gates != nil {
		for i := range p.opts.Gates.List {
			if g := &p.opts.Gates.List[i]; slices.Contains(g.Metrics, m) && g.matches(id) {
				return true
			}
		}
		return slices.Contains(p.opts.Metrics, m)
	}
	if len(p.opts.Metrics) > 0 {
		return slices.Contains(p.opts.Metrics, m)
	}
	return slices.Contains(Headline, m) && m != other(p.b.first().side.scenario(id))
}

// other returns the one of throughput and transactions that a scenario does not
// have.
func other(sc *suite.Scenario) sample.Metric {
	if sc.Workload.Kind.Exchange() {
		return sample.Throughput
	}
	return sample.Transactions
}

// nothing is the error that no figure can be compared, with the reason.
func (p *pairing) nothing() error {
	var measured []string
	for _, info := range sample.Known() {
		for _, id := range p.ids {
			if has := func(c *columns) bool { return len(c.values(id, info.Metric)) > 0 }; slices.ContainsFunc(p.a, has) || slices.ContainsFunc(p.b, has) {
				measured = append(measured, string(info.Metric))
				break
			}
		}
	}
	if len(measured) == 0 {
		return fmt.Errorf("neither run has a figure of %s; choose other scenarios", strings.Join(p.ids, ", "))
	}
	return fmt.Errorf("neither run has the requested metric; measured metrics: %s", strings.Join(measured, ", "))
}
