package report

import (
	"cmp"
	"fmt"
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// mostFindings is how many sentences of mostWords a person reads before the
// table.
const mostFindings = 4

// findings says in plain sentences what the comparisons show, one sentence for
// each pair of systems or, where one would be too long, for each of their
// workloads, and never more than the intervals hold. Where the plan compares
// nothing it says what was fastest.
func findings(r *Report, comparisons []suite.Comparison) []string {
	if !slices.ContainsFunc(r.Scenarios, func(s Scenario) bool { return s.Trials > 0 }) {
		return []string{"No trial yielded figures that count, so nothing can be said; the notes say why."}
	}
	all := contrasts(r, comparisons)
	if len(all) == 0 {
		return fastest(r)
	}
	shown := surest(all)
	var sentences []string
	for _, c := range all { // in the plan's order
		if slices.Contains(shown, c) {
			sentences = append(sentences, c.sentence())
		}
	}
	if more := len(all) - len(sentences); more > 0 {
		sentences[len(sentences)-1] += fmt.Sprintf(" (%d further in the table.)", more)
	}
	return sentences
}

// surest returns the contrasts to be said where not all can be: first those of
// which something is beyond doubt, then the dearest.
func surest(all []*contrast) []*contrast {
	if len(all) <= mostFindings {
		return all
	}
	list := slices.Clone(all)
	slices.SortStableFunc(list, func(a, b *contrast) int {
		return cmp.Or(cmp.Compare(after(!a.sure()), after(!b.sure())), cmp.Compare(b.weight(), a.weight()))
	})
	return list[:mostFindings]
}

// contrasts gathers the comparisons of the same two systems, and of those too
// long for one sentence the ones of the same workload.
func contrasts(r *Report, comparisons []suite.Comparison) []*contrast {
	rows := make(map[string]*Scenario, len(r.Scenarios))
	for i := range r.Scenarios {
		rows[r.Scenarios[i].ID] = &r.Scenarios[i]
	}
	call := r.callers()
	among := corrected(r.Comparisons)
	var whole []*contrast
	known := make(map[[2]string]*contrast)
	for _, c := range comparisons {
		subject, baseline := rows[c.Subject], rows[c.Baseline]
		if subject == nil || baseline == nil {
			continue
		}
		names := [2]name{{text: c.Subject}, {text: c.Baseline}}
		key := [2]string{c.Subject, c.Baseline}
		if betweenGroups(c) {
			names = [2]name{call(subject), call(baseline)}
			key = [2]string{suite.Group(c.Subject), suite.Group(c.Baseline)}
		}
		if known[key] == nil {
			known[key] = &contrast{subject: names[0], baseline: names[1], among: among}
			whole = append(whole, known[key])
		}
		known[key].add(r.Comparisons, subject, baseline)
	}
	var list []*contrast
	for _, c := range whole {
		list = append(list, c.parts()...)
	}
	return list
}

// betweenGroups reports whether a comparison is of two groups with the same
// workload. Otherwise the groups do not tell what differs.
func betweenGroups(c suite.Comparison) bool {
	return suite.Group(c.Subject) != suite.Group(c.Baseline) && suite.Part(c.Subject) == suite.Part(c.Baseline)
}

// corrected counts the comparisons that are corrected for one another.
func corrected(all []Comparison) int {
	n := 0
	for i := range all {
		if all[i].Adjusted != nil {
			n++
		}
	}
	return n
}

// speaks reports whether a sentence can say what the ratio of m means.
func speaks(m sample.Metric, subject, baseline *Scenario) bool {
	switch m {
	case sample.Transactions:
		return true
	case sample.Throughput:
		return subject.Transactions == nil // else it follows from the transactions
	case sample.SenderCPUPerByte, sample.ReceiverCPUPerByte:
		// One node that plays both sides is no sender.
		return subject.Transactions == nil && subject.Placement == baseline.Placement
	}
	return false
}
