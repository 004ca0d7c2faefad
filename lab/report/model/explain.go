package model

import (
	"fmt"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
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
	for i := range r.Ladders {
		l := &r.Ladders[i]
		title := "What it costs"
		if l.Title != "" {
			title += ": " + l.Title
		}
		paragraphs := l.sentences()
		for _, g := range l.Steps {
			if g.From != "" {
				paragraphs = append(paragraphs, r.shifts(g.Scenario, g.From, g.Name)...)
			}
		}
		add(title, paragraphs)
	}
	if len(r.Ladders) == 0 {
		add("What it costs", r.sentences())
	}
	add("Conditions", r.ConditionLines())
	add("Hypotheses", r.HypothesisLines())
	add("Published figures", r.publishedFindings())
	add("What could not be said", r.unsaid())
	add("Validity", r.ValidityLines())
	return list
}

// sentences returns the cost of each step over the step before it, and then how
// the last step's figures divide among the steps.
func (l *Ladder) sentences() []string {
	names := make(map[string]name)
	var list []string
	for _, g := range l.Steps {
		names[g.Scenario] = name{text: g.Name, prose: g.Name != g.Scenario}
		c := &contrast{subject: names[g.Scenario], baseline: names[g.From]}
		for _, cost := range g.Costs {
			if cost.of != nil {
				c.ratios = append(c.ratios, contrasted{Comparison: cost.of})
			}
		}
		if len(c.ratios) > 0 {
			list = append(list, c.sentence())
		}
	}
	if len(list) == 0 {
		return []string{"No two steps have figures, so the cost of a step is not known."}
	}
	for _, m := range climbed {
		if text := l.parts(m); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// parts divides the last step's figure among the steps: "Of the receiver's CPU
// per byte with VXLAN, 1.21 ns/byte, the bridge adds 0.12 and VXLAN 0.62."
func (l *Ladder) parts(m sample.Metric) string {
	var texts []string
	lines, scale := l.Lines(m)
	top, verb := 0, " adds "
	for i, line := range lines {
		c := l.Steps[i].Cost(m)
		if c == nil {
			continue
		}
		top = i
		if added, more := strings.CutPrefix(line.Added, "+"); more && c.Verdict == Differs {
			texts, verb = append(texts, l.Steps[i].Name+verb+added), " "
		}
	}
	if len(texts) == 0 || !addsUp(m) {
		return ""
	}
	return fmt.Sprintf("Of %s with %s, %s, %s.", statements[m].what, l.Steps[top].Name, withUnit(lines[top].Figure, scale.Unit), phrase.And(texts))
}

// unsaid lists the scenarios without figures, and then Doubts.
func (r *Report) unsaid() []string {
	var lines []string
	for i := range r.Scenarios {
		if s := &r.Scenarios[i]; s.Skipped != "" || s.Unmeasured() != "" {
			lines = append(lines, s.ID+" "+s.Lacks()+".")
		}
	}
	return append(lines, r.Doubts...)
}

// sentences returns all findings, and the causes that profiles show.
func (r *Report) sentences() []string {
	var list []string
	for _, c := range contrasts(r) {
		list = append(list, c.sentence())
	}
	if len(list) == 0 {
		return r.Findings
	}
	for _, c := range r.pairs {
		list = append(list, r.shifts(c.Subject, c.Baseline, c.Subject)...)
	}
	return list
}
