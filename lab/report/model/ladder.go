package model

import (
	"fmt"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// climbed lists what a ladder's step can cost: of a stream throughput and CPU per
// byte, of request/response transactions, latency and CPU per packet.
var climbed = []sample.Metric{
	sample.Throughput, sample.Transactions, sample.LatencyP50,
	sample.SenderCPUPerByte, sample.ReceiverCPUPerByte, sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket,
}

// climbs reports whether m is a cost of a step of this traffic.
func climbs(m sample.Metric, exchange bool) bool {
	switch m {
	case sample.Throughput, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte:
		return !exchange
	}
	return exchange
}

// addsUp reports whether the steps' costs of m sum to the last figure.
func addsUp(m sample.Metric) bool { return m == sample.LatencyP50 || ofSide(m) }

// ladders yields the plan's ladders, and the comparisons that their steps show.
func (b *builder) ladders() (list []Ladder, steps []*Comparison) {
	for i := range b.plan.Ladders {
		l := b.ladder(&b.plan.Ladders[i])
		for _, g := range l.Steps {
			for _, c := range g.Costs {
				if c.of != nil {
					steps = append(steps, c.of)
				}
			}
		}
		list = append(list, l)
	}
	return list, steps
}

// judge fills in what settle made of the comparisons of the steps.
func (l *Ladder) judge() {
	for _, g := range l.Steps {
		for i := range g.Costs {
			if c := &g.Costs[i]; c.of != nil {
				c.Ratio, c.P, c.Adjusted, c.Detectable, c.Verdict = &c.of.Ratio, c.of.P, c.of.Adjusted, c.of.Detectable, c.of.Verdict
				if !c.Adds() {
					c.Share = nil
				}
			}
		}
	}
}

// ladder climbs from each step that has figures to the next that has; a step
// without is noted, for the one above it then stands for both.
func (b *builder) ladder(l *suite.Ladder) Ladder {
	out := Ladder{Title: l.Title}
	last := b.top(l)
	from, missing := "", []string(nil)
	for i, id := range l.Steps {
		rung := Rung{Scenario: id, Name: stepName(l, i)}
		switch {
		case b.scenarios[id] == nil || len(b.cells[id].ok) == 0:
			b.doubt = append(b.doubt, fmt.Sprintf("Ladder %s: the step %s has no figures (%s).", quoted(l.Title), rung.Name, b.lacks(id)))
			missing = append(missing, rung.Name)
			out.Steps = append(out.Steps, rung)
			continue
		case len(missing) > 0 && from != "":
			b.doubt = append(b.doubt, fmt.Sprintf("Ladder %s: %s is measured against %s, so that its cost is also that of %s.", quoted(l.Title), rung.Name, from, phrase.And(missing)))
		case len(missing) > 0:
			b.doubt = append(b.doubt, fmt.Sprintf("Ladder %s: %s is the lowest step with figures; what it adds over %s is not known.", quoted(l.Title), rung.Name, phrase.And(missing)))
		}
		rung.From = from
		rung.Costs = b.costs(id, from, last)
		out.Steps = append(out.Steps, rung)
		from, missing = id, nil
	}
	return out
}

// top is the last step that has figures.
func (b *builder) top(l *suite.Ladder) string {
	for i := len(l.Steps) - 1; i >= 0; i-- {
		if c := b.cells[l.Steps[i]]; c != nil && len(c.ok) > 0 {
			return l.Steps[i]
		}
	}
	return ""
}

func stepName(l *suite.Ladder, i int) string {
	if i < len(l.Names) && l.Names[i] != "" {
		return l.Names[i]
	}
	return l.Steps[i]
}

// lacks returns a scenario's ID and the reason why it has no figures (Lacks).
func (b *builder) lacks(id string) string {
	c := b.cells[id]
	if c == nil {
		return id + " is not in the plan"
	}
	return id + " " + (&Scenario{Trials: len(c.ok), Skipped: b.run.Skipped[id], Samples: withoutOutputs(c.all)}).Lacks()
}

// costs yields what a step has of each metric, and what it adds over from,
// where that is a step.
func (b *builder) costs(id, from, last string) []Cost {
	var list []Cost
	exchange := b.scenarios[id].Workload.Kind.Exchange()
	for _, m := range climbed {
		figure, ok := b.cells[id].summary[m]
		if !ok || !climbs(m, exchange) {
			continue
		}
		c := Cost{Metric: m, Figure: &figure}
		if from != "" && comparable(m, b.scenarios[id], b.scenarios[from]) {
			b.climb(&c, id, from, last)
		}
		list = append(list, c)
	}
	return list
}

// climb fills in what a step adds over the one before: the difference of the two
// figures shown, so that a ladder's steps sum to its last figure.
func (b *builder) climb(c *Cost, id, from, last string) {
	below, ok := b.cells[from].summary[c.Metric]
	if c.of = b.paired(id, from, c.Metric); c.of == nil || !ok {
		return
	}
	r := c.of.Ratio
	c.Added = &Interval{Median: c.Figure.Median - below.Median, Low: below.Median * (r.Low - 1), High: below.Median * (r.High - 1), N: r.N, Level: r.Level}
	if whole, ok := b.cells[last].summary[c.Metric]; ok && addsUp(c.Metric) && whole.Median > 0 {
		if share := c.Added.Median / whole.Median; units.Finite(share) {
			c.Share = &share
		}
	}
}

// Adds reports whether a report states what the step adds. A difference must show,
// and the medians must differ in the direction of the ratio. The ratio is computed
// within blocks. If blocks drift, it can disagree with the medians.
func (c *Cost) Adds() bool {
	return c.Added != nil && c.Ratio != nil && c.Verdict != Alike && c.Added.Median*(c.Ratio.Median-1) > 0
}

// quoted sets a title apart; an untitled ladder is told by that it has none.
func quoted(title string) string {
	if title = strings.TrimSpace(title); title == "" {
		return "without a title"
	}
	return "“" + title + "”"
}
