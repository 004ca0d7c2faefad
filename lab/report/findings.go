package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// mostFindings is how many sentences a person reads before the table.
const mostFindings = 3

// findings says in plain sentences what the comparisons show, one sentence for
// each pair of systems, and never more than the intervals hold. Where the plan
// compares nothing it says what was fastest.
func findings(r *Report, comparisons []suite.Comparison) []string {
	if !slices.ContainsFunc(r.Scenarios, func(s Scenario) bool { return s.Trials > 0 }) {
		return []string{"No trial yielded figures, so nothing can be said; the notes say why."}
	}
	all := contrasts(r, comparisons)
	if len(all) == 0 {
		return fastest(r)
	}
	// The dearest where not all can be said, in the plan's order.
	shown := slices.Clone(all)
	if len(shown) > mostFindings {
		slices.SortStableFunc(shown, func(a, b *contrast) int { return cmp.Compare(b.weight(), a.weight()) })
		shown = shown[:mostFindings]
	}
	var sentences []string
	for _, c := range all {
		if slices.Contains(shown, c) {
			sentences = append(sentences, c.sentence())
		}
	}
	if more := len(all) - len(sentences); more > 0 {
		sentences[len(sentences)-1] += fmt.Sprintf(" (%d further in the table.)", more)
	}
	return sentences
}

// contrast is one system against another over all their workloads.
type contrast struct {
	subject, baseline string // as a sentence calls them
	ratios            []contrasted
	failed            int      // the subject's trials without figures
	absent            []string // why a workload has no ratio
}

// contrasted is a ratio that a sentence speaks of, and the workload it is of.
type contrasted struct {
	Comparison
	workload string
}

// contrasts gathers the comparisons of the same two systems.
func contrasts(r *Report, comparisons []suite.Comparison) []*contrast {
	rows := make(map[string]*Scenario, len(r.Scenarios))
	for i := range r.Scenarios {
		rows[r.Scenarios[i].ID] = &r.Scenarios[i]
	}
	call := callers(r.Scenarios)
	var list []*contrast
	byGroups := make(map[[2]string]*contrast)
	for _, c := range comparisons {
		subject, baseline := rows[c.Subject], rows[c.Baseline]
		if subject == nil || baseline == nil {
			continue
		}
		key := [2]string{groupOf(c.Subject), groupOf(c.Baseline)}
		if byGroups[key] == nil {
			byGroups[key] = &contrast{subject: call(subject), baseline: call(baseline)}
			list = append(list, byGroups[key])
		}
		byGroups[key].add(r.Comparisons, subject, baseline)
	}
	return list
}

func (c *contrast) add(all []Comparison, subject, baseline *Scenario) {
	c.failed += subject.Failed
	for _, s := range []*Scenario{subject, baseline} {
		if s.Skipped != "" {
			c.absent = append(c.absent, s.ID+" was skipped")
		} else if s.Trials == 0 {
			c.absent = append(c.absent, s.ID+" has no figures")
		}
	}
	for _, entry := range all {
		if entry.Subject == subject.ID && entry.Baseline == baseline.ID && speaks(entry.Metric, subject, baseline) {
			c.ratios = append(c.ratios, contrasted{entry, subject.Workload.Name})
		}
	}
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

// weight orders contrasts by how far the farthest distinct ratio lies from 1.
func (c *contrast) weight() float64 {
	far := 0.0
	for _, r := range c.ratios {
		if r.Distinct && r.Ratio.Median > 0 {
			far = max(far, math.Abs(math.Log(r.Ratio.Median)))
		}
	}
	return far
}

// fewest is the least number of pairs that a ratio of the contrast rests on.
func (c *contrast) fewest() int {
	n := math.MaxInt
	for _, r := range c.ratios {
		n = min(n, r.Ratio.N)
	}
	return n
}

// sentence says what the subject carries, what the processors spend, what shows
// no difference, and the doubts.
func (c *contrast) sentence() string {
	if len(c.ratios) == 0 {
		why := c.absent
		if len(why) == 0 {
			why = []string{"no block has figures of both"}
		}
		return fmt.Sprintf("%s cannot be compared with %s: %s.", capital(c.subject), c.baseline, strings.Join(why, ", "))
	}
	var traffic, processors, alike []string
	var spoken sample.Metric
	for _, r := range c.ratios {
		switch {
		case !r.Distinct && !r.few():
			alike = append(alike, c.likeness(r))
		case r.Metric == sample.Throughput || r.Metric == sample.Transactions:
			again := len(traffic) > 0 && spoken == r.Metric
			traffic, spoken = append(traffic, c.share(r, again)), r.Metric
		default:
			processors = append(processors, c.spending(r, len(processors) == 0))
		}
	}
	var parts []string
	if len(traffic) > 0 {
		parts = append(parts, c.subject+" "+list(traffic))
	}
	if len(processors) > 0 {
		lead := ""
		if len(traffic) == 0 { // nothing has named the two yet
			lead = "with " + c.subject + " instead of " + c.baseline + " "
		}
		parts = append(parts, lead+list(processors))
	}
	if len(alike) > 0 {
		parts = append(parts, c.between(len(parts) == 0)+"no difference shows in "+list(alike))
	}
	return capital(c.basis()+strings.Join(parts, "; ")) + "." + c.doubts()
}

// few reports whether the ratio rests on too few trials for its interval.
func (r contrasted) few() bool { return r.Ratio.N < stats.MinimumTrials(stats.Level) }

// sparse reports whether every ratio does.
func (c *contrast) sparse() bool {
	return !slices.ContainsFunc(c.ratios, func(r contrasted) bool { return !r.few() })
}

// basis opens the sentence where all of it rests on too few trials.
func (c *contrast) basis() string {
	switch n := c.fewest(); {
	case !c.sparse():
		return ""
	case n == 1:
		return "in 1 trial, too few for a 95 % interval, "
	default:
		return fmt.Sprintf("in %d trials, too few for a 95 %% interval (brackets hold the lowest and highest), ", n)
	}
}

// caveat marks one ratio of too few trials among others of enough.
func (c *contrast) caveat(r contrasted) string {
	if !r.few() || c.sparse() {
		return ""
	}
	return fmt.Sprintf(" (in %s, too few for a 95 %% interval)", count(r.Ratio.N, "trial"))
}

func (c *contrast) between(first bool) string {
	if first {
		return "between " + c.subject + " and " + c.baseline + " "
	}
	return ""
}

// share: "carries 97 % [95, 99] of raw's throughput", and again of the same
// "95 % [93, 97]".
func (c *contrast) share(r contrasted, again bool) string {
	if again {
		return percent(r.Ratio) + c.in(r) + c.caveat(r)
	}
	verb, noun := "carries", "throughput"
	if r.Metric == sample.Transactions {
		verb, noun = "completes", "transactions"
	}
	return fmt.Sprintf("%s %s of %s's %s%s%s", verb, percent(r.Ratio), c.baseline, noun, c.in(r), c.caveat(r))
}

// spending: "the sender spends 1.08× [1.05, 1.11] the CPU per byte", and after
// the first "the receiver 1.02× [1.01, 1.04]".
func (c *contrast) spending(r contrasted, first bool) string {
	if first {
		return fmt.Sprintf("%s spends %s the CPU per byte%s%s", side(r.Metric), factor(r.Ratio), c.in(r), c.caveat(r))
	}
	return fmt.Sprintf("%s %s%s%s", side(r.Metric), factor(r.Ratio), c.in(r), c.caveat(r))
}

// likeness: "throughput (99 % [97, 102], n = 6)".
func (c *contrast) likeness(r contrasted) string {
	what, figure := side(r.Metric)+"'s CPU per byte", factor(r.Ratio)
	switch r.Metric {
	case sample.Throughput:
		what, figure = "throughput", percent(r.Ratio)
	case sample.Transactions:
		what, figure = "transactions", percent(r.Ratio)
	}
	return fmt.Sprintf("%s%s (%s, n = %d)", what, c.in(r), figure, r.Ratio.N)
}

func side(m sample.Metric) string {
	if m == sample.SenderCPUPerByte {
		return "the sender"
	}
	return "the receiver"
}

// in names the workload where the contrast has the metric of several.
func (c *contrast) in(r contrasted) string {
	n := 0
	for _, other := range c.ratios {
		if other.Metric == r.Metric {
			n++
		}
	}
	if n < 2 {
		return ""
	}
	return " in " + r.workload
}

func (c *contrast) doubts() string {
	doubts := c.absent
	if c.failed > 0 {
		doubts = append([]string{fmt.Sprintf("%s of %s yielded no figures", count(c.failed, "trial"), c.subject)}, doubts...)
	}
	if len(doubts) == 0 {
		return ""
	}
	return " (" + capital(strings.Join(doubts, "; ")) + ".)"
}
