// Package sentences states the results of a report in sentences: the findings, the costs of
// ladder steps, the conditions, and how many trials count.
package sentences

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// mostFindings is the largest number of sentences, unless more contrasts have a confirmed
// difference: the findings state each of these.
const mostFindings = 4

// Findings returns one sentence for each pair of systems that the plan compares. Pairs
// with a confirmed difference come first. A sentence states a difference only if the
// comparison's verdict does. A plan without comparisons gets a sentence on the fastest
// scenario. Brief sentences have no intervals.
func Findings(r *model.Report, brief bool) []string {
	if !slices.ContainsFunc(r.Scenarios, func(s model.Scenario) bool { return s.Trials > 0 }) {
		return []string{"No trial yielded figures that count, so there are no findings."}
	}
	all := contrasts(r)
	if len(all) == 0 {
		return fastest(r, brief)
	}
	shown := surest(all)
	var sentences []string
	for _, c := range shown {
		sentences = append(sentences, c.sentence(brief))
	}
	if more := len(all) - len(shown); more > 0 {
		sentences[len(shown)-1] += fmt.Sprintf(" (%d further in the table.)", more)
	}
	return sentences
}

// Brief returns the findings without intervals, for a reader who has ten seconds.
func Brief(r *model.Report) []string {
	if r.HostMatrices != nil {
		return r.Findings
	}
	return Findings(r, true)
}

// surest returns the contrasts with a confirmed difference, and others up to mostFindings:
// those with the largest suggested difference. Each of the two groups has the plan's order.
func surest(all []*contrast) []*contrast {
	list := slices.Clone(all)
	slices.SortStableFunc(list, func(a, b *contrast) int {
		certainA, farA := a.weight()
		certainB, farB := b.weight()
		if certainA && certainB {
			return 0
		}
		return cmp.Or(model.After(!certainA, !certainB), cmp.Compare(farB, farA))
	})
	certain := 0
	for _, c := range list {
		if sure, _ := c.weight(); sure {
			certain++
		}
	}
	others := list[certain:min(len(list), max(certain, mostFindings))]
	slices.SortFunc(others, func(a, b *contrast) int { return cmp.Compare(slices.Index(all, a), slices.Index(all, b)) })
	return list[:certain+len(others)]
}

// certainlyFirst reports whether the interval of the first scenario's figure is above the intervals of all
// others. It returns false if a scenario has too few trials for the confidence level stats.Level.
func certainlyFirst(field []*model.Scenario, m sample.Metric) bool {
	first := field[0].Interval(m)
	return !slices.ContainsFunc(field, func(s *model.Scenario) bool {
		iv := s.Interval(m)
		return iv.N < stats.MinimumTrials(stats.Level) || s != field[0] && iv.High >= first.Low
	})
}

// fastest names the two fastest scenarios of each kind of traffic. It is for plans
// without comparisons.
func fastest(r *model.Report, brief bool) (sentences []string) {
	for _, m := range []sample.Metric{sample.Throughput, sample.Transactions} {
		var field []*model.Scenario
		for i := range r.Scenarios {
			if s := &r.Scenarios[i]; s.Interval(m) != nil && (m == sample.Transactions) == (s.Transactions != nil) {
				field = append(field, s)
			}
		}
		slices.SortStableFunc(field, func(a, b *model.Scenario) int { return cmp.Compare(b.Interval(m).Median, a.Interval(m).Median) })
		var reach []string
		for _, s := range field[:min(len(field), 2)] {
			scale := quantity.ScaleOf(m, s.Interval(m).Median)
			shown := *s.Interval(m)
			if brief {
				shown.N = 1 // without bounds
			}
			reach = append(reach, s.ID+" reaches "+scale.PrintInterval(shown))
		}
		switch {
		case len(field) == 0:
		case len(field) == 1:
			sentences = append(sentences, reach[0]+".")
		case !certainlyFirst(field, m):
			sentences = append(sentences, "No scenario certainly has the most "+m.Label()+": "+strings.Join(reach, ", ")+".")
		default:
			sentences = append(sentences, reach[0]+", the most "+m.Label()+"; "+reach[1]+".")
		}
	}
	return sentences
}
