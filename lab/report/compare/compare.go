package compare

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Headline has the metrics that are compared by default. A stream has throughput, and
// request/response has transactions.
var Headline = []sample.Metric{
	sample.Throughput, sample.Transactions, sample.LatencyP50, sample.LatencyP99,
	sample.SenderCPUPerByte, sample.ReceiverCPUPerByte,
}

// Options select scenarios and metrics to compare. The zero value compares every common
// scenario by its headline metrics.
type Options struct {
	Metrics   []sample.Metric
	Scenarios []string // ids, groups or patterns; nil is all
	// Gates to evaluate. If Metrics is empty, only the rows that gates name are
	// compared: the correction then covers no needless rows.
	Gates *Gates
	// AcrossMachines allows the verdicts better and worse, and gates, for runs
	// from different machines.
	AcrossMachines bool
	// History has stored runs of the same suite. They show the spread between
	// runs of the same software. Runs of A and B among them are ignored.
	History []Side
}

// RunInfo names one of the runs.
type RunInfo struct {
	ID       string        `json:"id"`
	Name     string        `json:"name,omitempty"`
	Note     string        `json:"note,omitempty"`
	Suite    string        `json:"suite"`
	Started  time.Time     `json:"started"`
	Status   sample.Status `json:"status"`
	Revision string        `json:"revision,omitempty"`
	Trials   int           `json:"trials"`  // trials that count, of all scenarios
	Invalid  int           `json:"invalid"` // trials that ran and do not count
}

// Comparison compares side B with side A. Each side is one run, or several runs
// of the same software.
type Comparison struct {
	A           RunInfo      `json:"a"` // the first run of the side
	B           RunInfo      `json:"b"`
	MoreA       []RunInfo    `json:"a_more,omitempty"`
	MoreB       []RunInfo    `json:"b_more,omitempty"`
	Environment []Difference `json:"environment"` // the machine's first
	Plan        []Difference `json:"plan"`
	// OtherMachine: the runs are from different machines. Across: the options
	// allow verdicts all the same.
	OtherMachine bool       `json:"other_machine"`
	Across       bool       `json:"across_machines,omitempty"`
	LeftOut      []LeftOut  `json:"left_out"`
	Values       []Row      `json:"values"`
	Ratios       []Row      `json:"ratios"` // of subject to baseline in B over the same in A
	Notes        []string   `json:"notes"`
	Judgement    *Judgement `json:"judgement,omitempty"` // nil where no gate was judged
}

// ErrOtherMachine is wrapped by the error for gates that are not evaluated
// because the runs are from different machines.
var ErrOtherMachine = errors.New("the runs are from different machines")

// Runs compares the runs of b with those of a. If gates cannot be evaluated, it
// returns the comparison beside the error: its notes may explain the error.
func Runs(a, b []Side, opts Options) (*Comparison, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, errors.New("compare: one side has no run; name a run for each side")
	}
	what := fmt.Sprintf("compare %s with %s", names(a), names(b))
	if err := distinct(slices.Concat(a, b)); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	p := &pairing{a: groupOf(a), b: groupOf(b), opts: opts, history: past(opts.History, &b[0], a, b)}
	if err := p.choose(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	before, after := p.a.first(), p.b.first()
	c := &Comparison{
		A: before.info(), B: after.info(), MoreA: p.a[1:].infos(), MoreB: p.b[1:].infos(),
		Environment: append(Environments(before.side.Run.Environment, after.side.Run.Environment), options(before.side.Run.Options, after.side.Run.Options)...), Plan: Plans(before.side, after.side),
		Across: opts.AcrossMachines, LeftOut: p.leftOut,
		Values: p.values(), Ratios: p.ratios(),
	}
	c.OtherMachine = len(OtherMachine(c.Environment)) > 0
	neutral := c.OtherMachine && !opts.AcrossMachines
	for _, rows := range [][]Row{c.Values, c.Ratios} {
		judge(rows, neutral)
		if len(OtherTrials(c.Environment)) > 0 || p.otherDistance() {
			undecide(rows)
		}
		noisyLast(rows)
	}
	c.Notes = p.notes(c)
	c.tidy()
	if len(c.Values) == 0 {
		return nil, fmt.Errorf("%s: %w", what, p.nothing())
	}
	return c, p.gates(c)
}

func groupOf(sides []Side) group {
	var g group
	for i := range sides {
		g = append(g, newColumns(&sides[i]))
	}
	return g
}

func (g group) infos() []RunInfo {
	var list []RunInfo
	for _, c := range g {
		list = append(list, c.info())
	}
	return list
}

// distinct returns an error for a run that is named twice.
func distinct(sides []Side) error {
	for i := range sides {
		for j := range i {
			if sides[i].same(&sides[j]) {
				return fmt.Errorf("run %s is named twice; name another run", sides[i].Run.ID)
			}
		}
	}
	return nil
}

func names(sides []Side) string {
	var ids []string
	for i := range sides {
		ids = append(ids, sides[i].Run.ID)
	}
	return strings.Join(ids, ",")
}

// tidy replaces nil lists by empty ones, so that the JSON form always has them.
func (c *Comparison) tidy() {
	c.Environment, c.Plan = list(c.Environment), list(c.Plan)
	c.LeftOut, c.Values, c.Ratios, c.Notes = list(c.LeftOut), list(c.Values), list(c.Ratios), list(c.Notes)
}

func list[T any](xs []T) []T {
	if xs == nil {
		return []T{}
	}
	return xs
}

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
	if other := OtherMachine(Environments(first.side.Run.Environment, c.side.Run.Environment)); len(other) > 0 && !p.opts.AcrossMachines {
		return fmt.Errorf("runs %s and %s of one side are from different machines (%s)", first.side.Run.ID, info.ID, other[0].Name)
	}
	if other := OtherTrials(options(first.side.Run.Options, c.side.Run.Options)); len(other) > 0 {
		return fmt.Errorf("runs %s and %s of one side count different trials (%s)", first.side.Run.ID, info.ID, changes(other))
	}
	for _, id := range first.ids() {
		if then := c.side.scenario(id); then != nil && len(Definition(*first.side.scenario(id), *then)) > 0 {
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
	var ids []string
	for i := range s.Plan.Scenarios {
		ids = append(ids, s.Plan.Scenarios[i].ID)
	}
	if len(ids) == 0 {
		return "none"
	}
	return phrase.Some(ids, 6)
}

// apart says why two runs have no common scenario, with a colon; "" if there is no known reason.
func apart(a, b *Side, out []LeftOut) string {
	before, after := a.Run.Options.Form(), b.Run.Options.Form()
	differ := func(what, a, b string) string { return fmt.Sprintf("the runs %s, A %s and B %s: ", what, a, b) }
	const here = "network namespaces of one machine"
	switch machine := OtherMachine(Environments(a.Run.Environment, b.Run.Environment)); {
	case a.Run.Suite != b.Run.Suite:
		return differ("are of different suites", "of "+a.Run.Suite, "of "+b.Run.Suite)
	case before.Testbed != after.Testbed:
		return differ("have different testbeds", cmp.Or(before.Testbed, here), cmp.Or(after.Testbed, here))
	case len(machine) > 0:
		return fmt.Sprintf("%s (%s): ", ErrOtherMachine, changes(machine))
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
