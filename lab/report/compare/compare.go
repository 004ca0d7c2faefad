// Package compare compares two runs scenario by scenario: the differences of
// their environments, ratios with interval and corrected p-value, and the
// results of gates. It also follows one metric through many runs.
package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/lists"
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
	// otherMachine: the runs are from different machines. Across: the options
	// allow verdicts all the same.
	OtherMachine bool       `json:"other_machine"`
	Across       bool       `json:"across_machines,omitempty"`
	LeftOut      []LeftOut  `json:"left_out"`
	Values       []Row      `json:"values"`
	Ratios       []Row      `json:"ratios"` // of subject to baseline in B over the same in A
	Notes        []string   `json:"notes"`
	Judgement    *Judgement `json:"judgement,omitempty"` // nil where no gate was judged
}

// errOtherMachine is wrapped by the error for gates that are not evaluated
// because the runs are from different machines.
var errOtherMachine = errors.New("the runs are from different machines")

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
		Environment: append(environments(before.side.Run.Environment, after.side.Run.Environment), options(before.side.Run.Options, after.side.Run.Options)...), Plan: plans(before.side, after.side),
		Across: opts.AcrossMachines, LeftOut: p.leftOut,
		Values: p.values(), Ratios: p.ratios(),
	}
	c.OtherMachine = len(otherMachine(c.Environment)) > 0
	neutral := c.OtherMachine && !opts.AcrossMachines
	for _, rows := range [][]Row{c.Values, c.Ratios} {
		judge(rows, neutral)
		if len(otherTrials(c.Environment)) > 0 || p.otherDistance() {
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
	return lists.Map(g, func(c *columns) RunInfo { return c.info() })
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

// Side is everything that is known of one run. This package does not change it.
type Side struct {
	Run     sample.Run
	Plan    suite.Plan
	Samples []sample.Sample
}

// same reports whether both sides are one run, perhaps from two copies of a
// store.
func (s *Side) same(other *Side) bool {
	return s.Run.ID == other.Run.ID && s.Run.Started.Equal(other.Run.Started) && s.Run.Seed == other.Run.Seed
}

func (s *Side) scenario(id string) *suite.Scenario {
	for i := range s.Plan.Scenarios {
		if s.Plan.Scenarios[i].ID == id {
			return &s.Plan.Scenarios[i]
		}
	}
	return nil
}
