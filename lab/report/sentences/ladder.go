package sentences

import (
	"fmt"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/profiles"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
)

// Ladder returns the cost of each step over the step before it, how the last step's
// figures divide among the steps, and the causes that profiles show.
func Ladder(r *model.Report, l *model.Ladder) []string {
	list := stepCosts(l)
	if len(list) == 0 {
		list = []string{"No two steps have figures, so the cost of a step is not known."}
	} else {
		for _, m := range verdicts.Climbed {
			if text := parts(l, m); text != "" {
				list = append(list, text)
			}
		}
	}
	for _, g := range l.Steps {
		if g.From != "" {
			list = append(list, profiles.Shifts(r, g.Scenario, g.From, g.Name)...)
		}
	}
	return list
}

// stepCosts returns the cost of each step over the step before it.
func stepCosts(l *model.Ladder) (list []string) {
	names := make(map[string]name)
	for _, g := range l.Steps {
		names[g.Scenario] = name{text: g.Name, prose: g.Name != g.Scenario}
		c := &contrast{subject: names[g.Scenario], baseline: names[g.From]}
		for _, cost := range g.Costs {
			if cost.Of != nil {
				c.ratios = append(c.ratios, contrasted{Comparison: cost.Of})
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
func parts(l *model.Ladder, m sample.Metric) string {
	var texts []string
	lines, scale := tables.Lines(l, m)
	top, verb := 0, " adds "
	for i, line := range lines {
		c := l.Steps[i].Cost(m)
		if c == nil {
			continue
		}
		top = i
		if added, more := strings.CutPrefix(line.Added, "+"); more && c.Verdict == model.Differs {
			texts, verb = append(texts, l.Steps[i].Name+verb+added), " "
		}
	}
	if len(texts) == 0 || !verdicts.AddsUp(m) {
		return ""
	}
	return fmt.Sprintf("Of %s with %s, %s, %s.", statements[m].what, l.Steps[top].Name, quantity.WithUnit(lines[top].Figure, scale.Unit), phrase.And(texts))
}

// Costs returns all findings, and the causes that profiles show.
func Costs(r *model.Report) (list []string) {
	if r.HostMatrices != nil {
		return r.Findings
	}
	for _, c := range contrasts(r) {
		list = append(list, c.sentence(false))
	}
	if len(list) == 0 {
		return r.Findings
	}
	for _, c := range r.Pairs {
		list = append(list, profiles.Shifts(r, c.Subject, c.Baseline, c.Subject)...)
	}
	return list
}
