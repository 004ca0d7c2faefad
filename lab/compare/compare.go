package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Alpha is the corrected p-value up to which a difference is called one.
const Alpha = 0.05

// Power is the probability with which a difference of the size that "no
// difference shows" names would have been found.
const Power = 0.8

// Headline is what is compared where nothing else is asked for; of throughput
// and transactions a scenario has that which its traffic is about.
var Headline = []sample.Metric{
	sample.Throughput, sample.Transactions, sample.LatencyP50, sample.LatencyP99,
	sample.SenderCPUPerByte, sample.ReceiverCPUPerByte,
}

// Options narrow a comparison. The zero value compares every common scenario
// by its headline metrics.
type Options struct {
	Metrics   []sample.Metric
	Scenarios []string // ids, groups or patterns; nil is all
	// Gates are judged. Without Metrics, only what they name is compared, so
	// that the correction for many comparisons is over no more than that.
	Gates *Gates
	// AcrossMachines calls differences better and worse, and judges gates,
	// though the runs are from different machines.
	AcrossMachines bool
}

// RunInfo names one of the runs.
type RunInfo struct {
	ID       string        `json:"id"`
	Suite    string        `json:"suite"`
	Started  time.Time     `json:"started"`
	Status   sample.Status `json:"status"`
	Revision string        `json:"revision,omitempty"`
	Trials   int           `json:"trials"`  // whose figures count, of all scenarios
	Invalid  int           `json:"invalid"` // that were run and do not count
}

// Comparison is run B against run A.
type Comparison struct {
	A           RunInfo      `json:"a"`
	B           RunInfo      `json:"b"`
	Environment []Difference `json:"environment"` // the machine's first
	Plan        []Difference `json:"plan"`
	// OtherMachine says that the runs are from different machines, and Across
	// that they are judged all the same.
	OtherMachine bool       `json:"other_machine"`
	Across       bool       `json:"across_machines,omitempty"`
	LeftOut      []LeftOut  `json:"left_out"`
	Values       []Row      `json:"values"`
	Ratios       []Row      `json:"ratios"` // of subject to baseline in B over the same in A
	Notes        []string   `json:"notes"`
	Judgement    *Judgement `json:"judgement,omitempty"` // nil where no gate was judged
}

// ErrOtherMachine is wrapped where gates are not judged because the runs are
// from different machines.
var ErrOtherMachine = errors.New("the runs are from different machines")

// Runs compares run b with run a. Where gates cannot be judged the comparison
// is returned beside the error, for what it shows may say why.
func Runs(a, b Side, opts Options) (*Comparison, error) {
	if a.same(&b) {
		return nil, fmt.Errorf("compare %s with %s: it is the same run; name another", a.Run.ID, b.Run.ID)
	}
	p := &pairing{a: newColumns(&a), b: newColumns(&b), opts: opts}
	if err := p.choose(); err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", a.Run.ID, b.Run.ID, err)
	}
	c := &Comparison{
		A: p.a.info(), B: p.b.info(),
		Environment: Environments(a.Run.Environment, b.Run.Environment), Plan: Plans(&a, &b),
		Across: opts.AcrossMachines, LeftOut: p.leftOut,
		Values: p.values(), Ratios: p.ratios(),
	}
	c.OtherMachine = len(OtherMachine(c.Environment)) > 0
	neutral := c.OtherMachine && !opts.AcrossMachines
	judge(c.Values, neutral)
	judge(c.Ratios, neutral)
	c.Notes = p.notes(c)
	c.tidy()
	if len(c.Values) == 0 {
		return nil, fmt.Errorf("compare %s with %s: %w", a.Run.ID, b.Run.ID, p.nothing())
	}
	return c, p.gates(c)
}

// tidy makes lists of the JSON form be there also when empty.
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

// pairing is what both runs have to be compared.
type pairing struct {
	a, b    *columns
	opts    Options
	common  []string // scenario ids that both define alike
	leftOut []LeftOut
	ids     []string // of common, those asked for
}

// choose finds the scenarios to compare.
func (p *pairing) choose() error {
	p.common, p.leftOut = common(p.a.side, p.b.side)
	if len(p.common) == 0 {
		return fmt.Errorf("no scenario is in both: A has %s, B has %s; run the same suite twice%s", scenarioNames(p.a.side), scenarioNames(p.b.side), reasons(p.leftOut))
	}
	for _, c := range []*columns{p.a, p.b} {
		if info := c.info(); info.Trials == 0 {
			return fmt.Errorf("no trial of run %s counts (%s); run the suite again", info.ID, c.troubles())
		}
	}
	var err error
	if p.ids, err = selection(p.opts.Scenarios, p.common); err != nil {
		return err
	}
	if p.opts.Gates == nil {
		return nil
	}
	return p.opts.Gates.bind(union(p.a.side, p.b.side))
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
	const most = 6
	var ids []string
	for i := range s.Plan.Scenarios {
		ids = append(ids, s.Plan.Scenarios[i].ID)
	}
	if len(ids) > most {
		return strings.Join(ids[:most], ", ") + fmt.Sprintf(" and %d more", len(ids)-most)
	}
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, ", ")
}

// reasons tells what sets scenarios of the same name apart.
func reasons(out []LeftOut) string {
	for _, l := range out {
		if strings.HasPrefix(l.Reason, "it is defined") {
			return fmt.Sprintf(" (%s: %s)", l.Scenario, l.Reason)
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
	return slices.Contains(Headline, m) && m != other(p.b.side.scenario(id))
}

// other is, of throughput and transactions, what a scenario is not about.
func other(sc *suite.Scenario) sample.Metric {
	switch sc.Workload.Kind {
	case suite.TCPRR, suite.TCPCRR, suite.UDPRR:
		return sample.Throughput
	}
	return sample.Transactions
}

// nothing says why there is no figure to compare.
func (p *pairing) nothing() error {
	var measured []string
	for _, info := range sample.Known() {
		for _, id := range p.ids {
			if len(p.a.values(id, info.Metric))+len(p.b.values(id, info.Metric)) > 0 {
				measured = append(measured, string(info.Metric))
				break
			}
		}
	}
	if len(measured) == 0 {
		return fmt.Errorf("neither run has a figure of %s; choose other scenarios", strings.Join(p.ids, ", "))
	}
	return fmt.Errorf("neither run has the metric that was asked for; measured were: %s", strings.Join(measured, ", "))
}
