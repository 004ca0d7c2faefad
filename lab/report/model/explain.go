package model

import (
	"fmt"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// Explain explains the results of the run in plain sentences: the cost of each ladder
// step, the hypotheses, figures that are missing, and the number of trials that count.
// A run without ladders has the findings in place of the ladder steps.
func (r *Report) Explain() document.Document {
	d := document.Document{Title: r.Run.Title + " (" + r.Run.ID + ")", Lines: []string{r.Run.Command()}}
	add := func(title string, sentences []string) { d.Add(document.Section{Title: title, Sentences: sentences}) }
	for i := range r.Ladders {
		add(titled("What it costs", r.Ladders[i].Title), r.climb(&r.Ladders[i]))
	}
	if len(r.Ladders) == 0 {
		add("What it costs", r.costs())
	}
	add("Conditions", r.ConditionLines())
	add("Hypotheses", r.HypothesisLines())
	add("Published figures", r.publishedFindings())
	var unsaid phrase.Lines
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		unsaid.SayIf(r.HostMatrices == nil && (s.Skipped != "" || s.Unmeasured() != ""), "%s %s.", s.ID, s.Lacks())
	}
	add("What could not be said", append(unsaid, r.Doubts...))
	add("Validity", r.ValidityLines())
	return d
}

// titled adds the suite's title to a heading.
func titled(heading, title string) string {
	if title != "" {
		heading += ": " + title
	}
	return heading
}

// climb returns the cost of each step over the step before it, how the last step's
// figures divide among the steps, and the causes that profiles show.
func (r *Report) climb(l *Ladder) []string {
	list := l.sentences()
	if len(list) == 0 {
		list = []string{"No two steps have figures, so the cost of a step is not known."}
	} else {
		for _, m := range climbed {
			if text := l.parts(m); text != "" {
				list = append(list, text)
			}
		}
	}
	for _, g := range l.Steps {
		if g.From != "" {
			list = append(list, r.shifts(g.Scenario, g.From, g.Name)...)
		}
	}
	return list
}

// sentences returns the cost of each step over the step before it.
func (l *Ladder) sentences() (list []string) {
	names := make(map[string]name)
	for _, g := range l.Steps {
		names[g.Scenario] = name{text: g.Name, prose: g.Name != g.Scenario}
		c := &contrast{subject: names[g.Scenario], baseline: names[g.From]}
		for _, cost := range g.Costs {
			if cost.of != nil {
				c.ratios = append(c.ratios, contrasted{Comparison: cost.of})
			}
		}
		if len(c.ratios) > 0 {
			list = append(list, c.sentence(false))
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
	return fmt.Sprintf("Of %s with %s, %s, %s.", statements[m].what, l.Steps[top].Name, quantity.WithUnit(lines[top].Figure, scale.Unit), phrase.And(texts))
}

// costs returns all findings, and the causes that profiles show.
func (r *Report) costs() (list []string) {
	if r.HostMatrices != nil {
		return r.Findings
	}
	for _, c := range contrasts(r) {
		list = append(list, c.sentence(false))
	}
	if len(list) == 0 {
		return r.Findings
	}
	for _, c := range r.pairs {
		list = append(list, r.shifts(c.Subject, c.Baseline, c.Subject)...)
	}
	return list
}
