package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Section is a heading and the plain paragraphs below it.
type Section struct {
	Title      string
	Paragraphs []string
}

// Explain says in plain sentences what the run shows: what each step of the
// ladders costs, what became of the hypotheses, what could not be said and why,
// and how much of the run counts. Without ladders the findings stand for them.
func (r *Report) Explain() []Section {
	var list []Section
	add := func(title string, paragraphs []string) {
		if len(paragraphs) > 0 {
			list = append(list, Section{title, paragraphs})
		}
	}
	var open []string // what could not be said
	for i := range r.Ladders {
		e := explainer{&r.Ladders[i]}
		title := "What it costs"
		if t := r.Ladders[i].Title; t != "" {
			title += ": " + t
		}
		add(title, append(e.climb(), e.shifts(r)...))
		open = append(open, e.unsaid()...)
	}
	if len(r.Ladders) == 0 {
		add("What it costs", r.sentences())
	}
	add("Hypotheses", judged(r.Hypotheses))
	add("Published figures", r.publishedFindings())
	add("What could not be said", append(open, r.unsaid()...))
	add("Validity", r.validityLines())
	return list
}

// explainer puts one ladder into words.
type explainer struct{ l *Ladder }

// climb says what each step costs over the one before, in one sentence, and
// then whose the last step's figures are.
func (e explainer) climb() []string {
	var steps []string
	for i := range e.l.Steps {
		g := &e.l.Steps[i]
		if g.From == "" {
			continue
		}
		says := e.says(g)
		if len(says) == 0 {
			says = []string{g.silence()}
		}
		steps = append(steps, e.lead(g, len(steps) == 0)+" "+phrase.And(says))
	}
	if len(steps) == 0 {
		return []string{"No two steps have figures, so nothing can be said of what a step costs."}
	}
	paragraphs := []string{phrase.Capital(strings.Join(steps, "; ")) + "."}
	for _, m := range climbed {
		if text := e.parts(m); text != "" {
			paragraphs = append(paragraphs, text)
		}
	}
	return paragraphs
}

// shifts says where in the code each step's cost arises, by the profiles.
func (e explainer) shifts(r *Report) []string {
	var lines []string
	for i := range e.l.Steps {
		if g := &e.l.Steps[i]; g.From != "" {
			lines = append(lines, r.shifts(g.Scenario, g.From, g.Name)...)
		}
	}
	return lines
}

// lead opens a step's part of the sentence: "over raw, the bridge", "VXLAN then".
func (e explainer) lead(g *Rung, first bool) string {
	if first {
		return "over " + e.name(g.From) + ", " + g.Name
	}
	return g.Name + " then"
}

// name is what the ladder calls a scenario.
func (e explainer) name(id string) string {
	for i := range e.l.Steps {
		if e.l.Steps[i].Scenario == id {
			return e.l.Steps[i].Name
		}
	}
	return id
}

// says lists what a step costs beyond doubt, and then what is suggested.
func (e explainer) says(g *Rung) []string {
	var sure, suggested []string
	for i := range g.Costs {
		c := &g.Costs[i]
		if c.Added == nil || c.Ratio == nil {
			continue
		}
		switch c.Verdict {
		case Differs:
			sure = append(sure, c.sentence())
		case Suggested:
			suggested = append(suggested, c.sentence()+" (suggested)")
		}
	}
	return append(sure, suggested...)
}

// silence says why nothing is said of a step's cost.
func (g *Rung) silence() string {
	for i := range g.Costs {
		if v := g.Costs[i].Verdict; v != TooFew && v != "" {
			return "shows no difference"
		}
	}
	return "has too few trials to say what it costs"
}

// sentence says the cost: "costs 4.1 % of throughput [3.0, 5.2]", "adds
// 0.12 ns/byte at the receiver, 1.18× [1.15, 1.22]".
func (c *Cost) sentence() string {
	if !addsUp(c.Metric) {
		return c.traffic()
	}
	ratio := factor(*c.Ratio)
	if (c.Ratio.Median > 1) != (c.Added.Median > 0) {
		// The medians of all trials and the ratio within blocks can part.
		return "takes " + ratio + " the " + c.Metric.Label()
	}
	scale := ScaleOf(c.Metric, c.Figure.Median)
	verb := "adds"
	if c.Added.Median < 0 {
		verb = "saves"
	}
	figure, _ := scale.Figure(*c.Figure)
	added := strings.TrimLeft(scale.added(c.Added.Median, figure), "+−")
	return fmt.Sprintf("%s %s%s, %s", verb, withUnit(added, scale.Unit), c.where(), ratio)
}

// traffic says the share of throughput or transactions that is lost or won.
func (c *Cost) traffic() string {
	iv := *c.Ratio
	verb := "brings"
	lost := Interval{Median: iv.Median - 1, Low: iv.Low - 1, High: iv.High - 1, N: iv.N}
	if iv.Median < 1 {
		verb = "costs"
		lost.Median, lost.Low, lost.High = 1-iv.Median, 1-iv.High, 1-iv.Low
	}
	decimals := 1
	if w := 100 * (lost.High - lost.Low); w > 0 && w < 0.2 {
		decimals = 2
	}
	text := fmt.Sprintf("%s %.*f %%", verb, decimals, 100*lost.Median)
	if iv.Median < 1 {
		text += " of " + c.Metric.Label()
	} else {
		text += " more " + c.Metric.Label()
	}
	if iv.N > 1 {
		text += fmt.Sprintf(" [%s, %s]", minus(100*lost.Low, decimals), minus(100*lost.High, decimals))
	}
	return text
}

// where says on which side a cost arises.
func (c *Cost) where() string {
	switch c.Metric {
	case sample.SenderCPUPerByte, sample.SenderCPUPerPacket:
		return " at the sender"
	case sample.ReceiverCPUPerByte, sample.ReceiverCPUPerPacket:
		return " at the receiver"
	case sample.LatencyP50:
		return " to the median round trip"
	}
	return ""
}

// minus prints v with a true minus.
func minus(v float64, decimals int) string { return unsigned(signed(v, decimals)) }

// unsigned takes the plus signs away.
func unsigned(text string) string { return strings.ReplaceAll(text, "+", "") }

// parts says what the last step's figure is made of: "Of the receiver's
// 1.21 ns/byte with VXLAN, 0.62 are spent by VXLAN and 0.12 by the bridge."
func (e explainer) parts(m sample.Metric) string {
	var top *Rung
	for i := range e.l.Steps {
		if e.l.Steps[i].Cost(m) != nil {
			top = &e.l.Steps[i]
		}
	}
	if top == nil || !addsUp(m) {
		return ""
	}
	whole := top.Cost(m).Figure
	scale := ScaleOf(m, whole.Median)
	type part struct {
		by  string
		add float64
	}
	var spent []part
	for i := range e.l.Steps {
		g := &e.l.Steps[i]
		if c := g.Cost(m); c != nil && c.Verdict == Differs && c.Added != nil && c.Added.Median > 0 && c.Added.Median <= whole.Median {
			spent = append(spent, part{g.Name, c.Added.Median})
		}
	}
	if len(spent) == 0 {
		return ""
	}
	slices.SortStableFunc(spent, func(a, b part) int { return cmp.Compare(b.add, a.add) })
	figure, _ := scale.Figure(*whole)
	var texts []string
	for i, p := range spent {
		v := p.add / scale.By
		verb := ""
		if i == 0 {
			verb = "are spent "
		}
		text := fmt.Sprintf("%s %sby %s", grouped(v, min(significant(v), significant(whole.Median/scale.By))), verb, p.by)
		texts = append(texts, text)
	}
	return fmt.Sprintf("Of %s %s with %s, %s.", whose(m), withUnit(figure, scale.Unit), top.Name, phrase.And(texts))
}

// whose is the owner of a figure: "the receiver's".
func whose(m sample.Metric) string {
	switch m {
	case sample.SenderCPUPerByte, sample.SenderCPUPerPacket:
		return "the sender's"
	case sample.ReceiverCPUPerByte, sample.ReceiverCPUPerPacket:
		return "the receiver's"
	}
	return "the median round trip's"
}

// unsaid lists, step by step, what is not significant, with what would have
// been seen. Of steps without figures the doubts say why.
func (e explainer) unsaid() []string {
	var lines []string
	for i := range e.l.Steps {
		g := &e.l.Steps[i]
		var alike, suggested, few []string
		for j := range g.Costs {
			c := &g.Costs[j]
			if c.Ratio == nil {
				continue
			}
			switch c.Verdict {
			case Alike:
				alike = append(alike, fmt.Sprintf("%s (%s, n = %d%s)", c.Metric.Label(), factor(*c.Ratio), c.Ratio.N, wouldShow("; ", c.Detectable, c.Ratio.Median)))
			case Suggested:
				suggested = append(suggested, fmt.Sprintf("%s (%s, n = %d, %s%s)", c.Metric.Label(), factor(*c.Ratio), c.Ratio.N, pValue(*c.P), afterCorrection(c.Adjusted)))
			case TooFew:
				few = append(few, fmt.Sprintf("%s (%s, n = %d)", c.Metric.Label(), factor(*c.Ratio), c.Ratio.N))
			}
		}
		pair := fmt.Sprintf("Between %s and %s ", g.Name, e.name(g.From))
		if len(alike) > 0 {
			lines = append(lines, pair+"no difference shows in "+phrase.And(alike)+".")
		}
		if len(suggested) > 0 {
			lines = append(lines, pair+"a difference is suggested, no more, in "+phrase.And(suggested)+".")
		}
		if len(few) > 0 {
			lines = append(lines, pair+"the trials are too few to tell a difference from chance in "+phrase.And(few)+".")
		}
	}
	return lines
}

// afterCorrection is a suggested p-value after the correction.
func afterCorrection(adjusted *float64) string {
	if adjusted == nil {
		return ""
	}
	return fmt.Sprintf(", %.2g after the correction", *adjusted)
}

// unsaid lists the scenarios without figures, and the doubts.
func (r *Report) unsaid() []string {
	var lines []string
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if s.Skipped != "" {
			lines = append(lines, fmt.Sprintf("%s was skipped: %s.", s.ID, strings.TrimSuffix(s.Skipped, ".")))
		} else if why := s.Unmeasured(); why != "" {
			lines = append(lines, fmt.Sprintf("%s %s.", s.ID, why))
		}
	}
	return append(lines, r.Doubts...)
}

// sentences are the findings, every one of them.
func (r *Report) sentences() []string {
	var pairs []suite.Comparison
	for i := range r.Comparisons {
		c := suite.Comparison{Baseline: r.Comparisons[i].Baseline, Subject: r.Comparisons[i].Subject}
		if !slices.Contains(pairs, c) {
			pairs = append(pairs, c)
		}
	}
	var list []string
	for _, c := range contrasts(r, pairs) {
		list = append(list, c.sentence())
	}
	if len(list) == 0 {
		return r.Findings
	}
	for _, c := range pairs {
		list = append(list, r.shifts(c.Subject, c.Baseline, c.Subject)...)
	}
	return list
}
