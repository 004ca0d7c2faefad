package verdicts

import (
	"cmp"
	"math"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Climbed lists the metrics of a ladder step. A stream has throughput and CPU per
// byte. Request/response has transactions, latency and CPU per packet.
var Climbed = []sample.Metric{
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

// AddsUp reports whether the steps' costs of m sum to the last figure.
func AddsUp(m sample.Metric) bool { return m == sample.LatencyP50 || OfSide(m) }

// ladders makes the plan's ladders. steps has the comparisons of their steps.
func (b *Judge) ladders() (list []model.Ladder, steps []*model.Comparison) {
	for i := range b.Plan.Ladders {
		l := b.ladder(&b.Plan.Ladders[i])
		for _, g := range l.Steps {
			for _, c := range g.Costs {
				if c.Of != nil {
					steps = append(steps, c.Of)
				}
			}
		}
		list = append(list, l)
	}
	return list, steps
}

// judge copies the results of the steps' comparisons into the costs. Call it after
// settle.
func judge(l *model.Ladder) {
	for _, g := range l.Steps {
		for i := range g.Costs {
			if c := &g.Costs[i]; c.Of != nil {
				c.Ratio, c.P, c.Adjusted, c.Detectable, c.Verdict = &c.Of.Ratio, c.Of.P, c.Of.Adjusted, c.Of.Detectable, c.Of.Verdict
				if !c.Adds() {
					c.Share = nil
				}
			}
		}
	}
}

// ladder compares each step with the last step before it that has figures. A step
// without figures adds a doubt, because the next step then includes its cost.
func (b *Judge) ladder(l *suite.Ladder) model.Ladder {
	out := model.Ladder{Title: l.Title}
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
		rung := model.Rung{Scenario: id, Name: id}
		if i < len(l.Names) {
			rung.Name = cmp.Or(l.Names[i], id)
		}
		if !b.measured(id) {
			b.Doubt.Say("%s: the step %s has no figures (%s).", title, rung.Name, b.Lacks(id))
			missing = append(missing, rung.Name)
		} else {
			b.Doubt.SayIf(len(missing) > 0 && from != "", "%s: %s is measured against %s, so that its cost is also that of %s.", title, rung.Name, from, phrase.And(missing))
			b.Doubt.SayIf(len(missing) > 0 && from == "", "%s: %s is the lowest step with figures; what it adds over %s is not known.", title, rung.Name, phrase.And(missing))
			rung.From, rung.Costs = from, b.costs(id, from, last)
			from, missing = id, nil
		}
		out.Steps = append(out.Steps, rung)
	}
	return out
}

// Lacks returns a scenario's ID and the reason why it has no figures.
func (b *Judge) Lacks(id string) string {
	if c := b.Cells[id]; c != nil {
		return id + " " + rejected.Lacks(c.Row)
	}
	return id + " is not in the plan"
}

// costs returns the figures of a step. If from is not "", each has the difference to
// the step from.
func (b *Judge) costs(id, from, last string) (list []model.Cost) {
	step := b.Cells[id].Scenario
	for _, m := range Climbed {
		figure, ok := b.Cells[id].Summary[m]
		if !ok || !climbs(m, step.Workload.Kind.Exchange()) {
			continue
		}
		c := model.Cost{Metric: m, Figure: &figure}
		if from != "" && Comparable(m, step, b.Cells[from].Scenario) {
			b.climb(&c, id, from, last)
		}
		list = append(list, c)
	}
	return list
}

// climb sets Added to the difference between the figures of this step and of the step
// from. So the additions of all steps sum to the last figure.
func (b *Judge) climb(c *model.Cost, id, from, last string) {
	below, ok := b.Cells[from].Summary[c.Metric]
	if c.Of = b.Paired(id, from, c.Metric); c.Of == nil || !ok {
		return
	}
	r := c.Of.Ratio
	c.Added = &quantity.Interval{Median: c.Figure.Median - below.Median, Low: below.Median * (r.Low - 1), High: below.Median * (r.High - 1), N: r.N, Level: r.Level}
	if whole, ok := b.Cells[last].Summary[c.Metric]; ok && AddsUp(c.Metric) && whole.Median > 0 {
		if share := c.Added.Median / whole.Median; !math.IsInf(share, 0) {
			c.Share = &share
		}
	}
}
