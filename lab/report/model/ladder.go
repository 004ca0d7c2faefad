package model

import (
	"cmp"
	"math"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// climbed lists the metrics of a ladder step. A stream has throughput and CPU per
// byte. Request/response has transactions, latency and CPU per packet.
var climbed = []sample.Metric{
	sample.Throughput, sample.Transactions, sample.LatencyP50,
	sample.SenderCPUPerByte, sample.ReceiverCPUPerByte, sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket,
}

// climbs reports whether ladder steps with this traffic show m.
func climbs(m sample.Metric, exchange bool) bool {
	switch m {
	case sample.Throughput, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte:
		return !exchange
	}
	return exchange
}

// addsUp reports whether the steps' costs of m sum to the last figure.
func addsUp(m sample.Metric) bool { return m == sample.LatencyP50 || ofSide(m) }

// ladders makes the plan's ladders. steps has the comparisons of their steps.
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

// judge copies the results of the steps' comparisons into the costs. Call it after
// settle.
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

// ladder compares each step with the last step before it that has figures. A step
// without figures adds a doubt, because the next step then includes its cost.
func (b *builder) ladder(l *suite.Ladder) Ladder {
	out := Ladder{Title: l.Title}
	title := "Ladder without a title"
	if text := strings.TrimSpace(l.Title); text != "" {
		title = "Ladder “" + text + "”"
	}
	last := ""
	for _, id := range l.Steps {
		if b.measured(id) {
			last = id
		}
	}
	from, missing := "", []string(nil)
	for i, id := range l.Steps {
		rung := Rung{Scenario: id, Name: id}
		if i < len(l.Names) {
			rung.Name = cmp.Or(l.Names[i], id)
		}
		if !b.measured(id) {
			b.doubt.Say("%s: the step %s has no figures (%s).", title, rung.Name, b.lacks(id))
			missing = append(missing, rung.Name)
		} else {
			b.doubt.SayIf(len(missing) > 0 && from != "", "%s: %s is measured against %s, so that its cost is also that of %s.", title, rung.Name, from, phrase.And(missing))
			b.doubt.SayIf(len(missing) > 0 && from == "", "%s: %s is the lowest step with figures; what it adds over %s is not known.", title, rung.Name, phrase.And(missing))
			rung.From, rung.Costs = from, b.costs(id, from, last)
			from, missing = id, nil
		}
		out.Steps = append(out.Steps, rung)
	}
	return out
}

// lacks returns a scenario's ID and the reason why it has no figures (Lacks).
func (b *builder) lacks(id string) string {
	if c := b.cells[id]; c != nil {
		return id + " " + c.row.Lacks()
	}
	return id + " is not in the plan"
}

// costs returns the figures of a step. If from is not "", each has the difference to
// the step from.
func (b *builder) costs(id, from, last string) (list []Cost) {
	step := b.cells[id].scenario
	for _, m := range climbed {
		figure, ok := b.cells[id].summary[m]
		if !ok || !climbs(m, step.Workload.Kind.Exchange()) {
			continue
		}
		c := Cost{Metric: m, Figure: &figure}
		if from != "" && comparable(m, step, b.cells[from].scenario) {
			b.climb(&c, id, from, last)
		}
		list = append(list, c)
	}
	return list
}

// climb sets Added to the difference between the figures of this step and of the step
// from. So the additions of all steps sum to the last figure.
func (b *builder) climb(c *Cost, id, from, last string) {
	below, ok := b.cells[from].summary[c.Metric]
	if c.of = b.paired(id, from, c.Metric); c.of == nil || !ok {
		return
	}
	r := c.of.Ratio
	c.Added = &quantity.Interval{Median: c.Figure.Median - below.Median, Low: below.Median * (r.Low - 1), High: below.Median * (r.High - 1), N: r.N, Level: r.Level}
	if whole, ok := b.cells[last].summary[c.Metric]; ok && addsUp(c.Metric) && whole.Median > 0 {
		if share := c.Added.Median / whole.Median; !math.IsInf(share, 0) {
			c.Share = &share
		}
	}
}

// Adds reports whether a report states what the step adds. A difference must show,
// and the medians must differ in the direction of the ratio. The ratio is computed
// within blocks. If blocks drift, it can disagree with the medians.
func (c *Cost) Adds() bool {
	return c.Added != nil && c.Ratio != nil && !c.Verdict.Equal() && c.Added.Median*(c.Ratio.Median-1) > 0
}
