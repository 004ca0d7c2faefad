package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// statement is how a sentence says that a system has more or less of a metric
// than its baseline: "carries 29 % less than the bridge [26, 32]".
type statement struct{ verb, fewer, noun, what string }

var statements = map[sample.Metric]statement{
	sample.Throughput:           {"carries", "less", "", "throughput"},
	sample.Transactions:         {"completes", "fewer", " transactions", "transactions"},
	sample.LatencyP50:           {"has", "less", " median latency", "the median latency"},
	sample.SenderCPUPerByte:     {"costs the sender", "less", " CPU per byte", "the sender's CPU per byte"},
	sample.ReceiverCPUPerByte:   {"costs the receiver", "less", " CPU per byte", "the receiver's CPU per byte"},
	sample.SenderCPUPerPacket:   {"costs the sender", "less", " CPU per packet", "the sender's CPU per packet"},
	sample.ReceiverCPUPerPacket: {"costs the receiver", "less", " CPU per packet", "the receiver's CPU per packet"},
}

// clause says a difference, with the baseline where than names it; see statistics.
func (c *Comparison) clause(than string, said Verdict) string {
	s, word := statements[c.Metric], "more"
	if c.Ratio.Median < 1 {
		word = statements[c.Metric].fewer
	}
	figure, _ := c.change()
	return s.verb + " " + figure + " " + word + s.noun + than + c.statistics(said)
}

// change prints the ratio as a change in percent, without its sign where the
// clause has it in words: "3.6 %", with the bounds "2.4, 4.1".
func (c *Comparison) change() (figure, bounds string) {
	iv := Interval{Median: 100 * (c.Ratio.Median - 1), Low: 100 * (c.Ratio.Low - 1), High: 100 * (c.Ratio.High - 1), N: c.Ratio.N}
	if iv.Median < 0 && c.Verdict != Alike {
		iv.Median, iv.Low, iv.High = -iv.Median, -iv.High, -iv.Low
	}
	figure, bounds, _ = strings.Cut(strings.ReplaceAll(bracketed(iv, 0, " %", 0), "-", "−"), " [")
	return figure, strings.TrimSuffix(bounds, "]")
}

// statistics are the bounds of a change, and how far they can be trusted where
// it is not certain: " [2.4, 4.1; suggested]". A verdict that the sentence has
// said already is left out.
func (c *Comparison) statistics(said Verdict) string {
	var parts []string
	if _, bounds := c.change(); bounds != "" {
		parts = append(parts, bounds)
	}
	switch {
	case c.Verdict == said:
	case c.Verdict == Suggested:
		parts = append(parts, "suggested")
	case c.Verdict == TooFew:
		parts = append(parts, phrase.Count(c.Ratio.N, "trial")+", too few to tell")
	case c.Verdict == Alike:
		parts[0] += " %"
		if would := wouldShow("", c.Detectable, c.Ratio.Median); would != "" {
			parts = append(parts, would)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " [" + strings.Join(parts, "; ") + "]"
}

// contrast is what one sentence speaks of: one system or scenario beside
// another, in one workload where it has one.
type contrast struct {
	subject, baseline name
	workload          string
	ratios            []contrasted
	absent            []string // why a workload has no ratio
}

// contrasted is a ratio with the workload that it is of.
type contrasted struct {
	*Comparison
	workload string
}

// sentence says what the subject has more or less of than the baseline, and in
// what no difference shows.
func (c *contrast) sentence() string {
	if len(c.ratios) == 0 {
		why := c.absent
		if len(why) == 0 {
			why = []string{"no block has figures of both"}
		}
		return c.subject.opening() + " cannot be compared with " + c.baseline.text + ": " + strings.Join(why, ", ") + "."
	}
	var says, alike []string
	than := " than " + c.baseline.text
	lead, said := c.lead()
	slices.SortStableFunc(c.ratios, func(a, b contrasted) int { // the traffic before its costs
		return cmp.Compare(after(a.Metric.Side() != ""), after(b.Metric.Side() != ""))
	})
	for _, r := range c.ratios {
		if r.Verdict == Alike {
			alike = append(alike, statements[r.Metric].what+r.statistics(said))
			continue
		}
		says, than = append(says, r.clause(than, said)), ""
	}
	text := phrase.And(says)
	none := "no difference shows in " + phrase.And(alike)
	switch {
	case len(says) == 0:
		text = "between " + c.subject.text + " and " + c.baseline.text + " " + none
	case len(alike) > 0:
		text += "; " + none
	}
	if c.workload != "" {
		lead += "in " + c.workload + ", "
	}
	switch named := len(says) > 0; {
	case named && lead == "":
		return c.subject.opening() + " " + text + "."
	case named:
		text = c.subject.text + " " + text
	}
	return phrase.Capital(lead+text) + "."
}

// lead opens a sentence of which nothing is certain, and is the verdict that it
// says so of all.
func (c *contrast) lead() (text string, said Verdict) {
	has := func(differ func(r contrasted) bool) bool { return slices.ContainsFunc(c.ratios, differ) }
	n := c.ratios[0].Ratio.N
	switch {
	case !has(func(r contrasted) bool { return r.Verdict != TooFew || r.Ratio.N != n }):
		return "in " + phrase.Count(n, "trial") + ", too few to tell: ", TooFew
	case has(func(r contrasted) bool { return r.Verdict == Suggested }) && !has(func(r contrasted) bool { return r.Verdict == Differs }):
		return "suggested, not certain: ", Suggested
	}
	return "", ""
}

// byWorkload is the contrast itself where it has each metric once, else one for
// each workload.
func (c *contrast) byWorkload() []*contrast {
	metrics := make(map[sample.Metric]bool)
	for _, r := range c.ratios {
		metrics[r.Metric] = true
	}
	if len(metrics) == len(c.ratios) {
		return []*contrast{c}
	}
	var list []*contrast
	of := make(map[string]*contrast)
	for _, r := range c.ratios {
		if of[r.workload] == nil {
			of[r.workload] = &contrast{subject: c.subject, baseline: c.baseline, workload: r.workload}
			list = append(list, of[r.workload])
		}
		of[r.workload].ratios = append(of[r.workload].ratios, r)
	}
	return list
}

// weight orders contrasts by how far the farthest ratio that differs, or seems
// to, lies from 1; those of which something is certain come first.
func (c *contrast) weight() (certain bool, far float64) {
	for _, r := range c.ratios {
		if (r.Verdict == Differs || r.Verdict == Suggested) && r.Ratio.Median > 0 {
			far = max(far, math.Abs(math.Log(r.Ratio.Median)))
		}
		certain = certain || r.Verdict == Differs
	}
	return certain, far
}

// contrasts gathers the comparisons of the same two systems.
func contrasts(r *Report, comparisons []suite.Comparison) []*contrast {
	rows := make(map[string]*Scenario, len(r.Scenarios))
	for i := range r.Scenarios {
		rows[r.Scenarios[i].ID] = &r.Scenarios[i]
	}
	call := r.callers()
	var whole []*contrast
	known := make(map[[2]string]*contrast)
	for _, c := range comparisons {
		subject, baseline := rows[c.Subject], rows[c.Baseline]
		if subject == nil || baseline == nil {
			continue
		}
		names, key := [2]name{{text: c.Subject}, {text: c.Baseline}}, [2]string{c.Subject, c.Baseline}
		// Of two groups with the same workload the groups tell what differs.
		if suite.Group(c.Subject) != suite.Group(c.Baseline) && suite.Part(c.Subject) == suite.Part(c.Baseline) {
			names, key = [2]name{call(subject), call(baseline)}, [2]string{suite.Group(c.Subject), suite.Group(c.Baseline)}
		}
		if known[key] == nil {
			known[key] = &contrast{subject: names[0], baseline: names[1]}
			whole = append(whole, known[key])
		}
		known[key].add(r.Comparisons, subject, baseline)
	}
	var list []*contrast
	for _, c := range whole {
		list = append(list, c.byWorkload()...)
	}
	return list
}

// add takes in the comparison of two scenarios: the headline metrics, and of a
// node that plays both sides no sender's CPU.
func (c *contrast) add(all []Comparison, subject, baseline *Scenario) {
	for _, s := range []*Scenario{subject, baseline} {
		if s.Skipped != "" {
			c.absent = append(c.absent, s.ID+" was skipped")
		} else if why := s.Unmeasured(); why != "" {
			c.absent = append(c.absent, s.ID+" "+why)
		} else if s.Trials == 0 {
			c.absent = append(c.absent, s.ID+" has no figures")
		}
	}
	workload := suite.Part(subject.ID)
	if workload == "" {
		workload = subject.Workload.Name
	}
	for i := range all {
		r := &all[i]
		speaks := Headline(r.Metric, subject.Transactions != nil) && (r.Metric.Side() == "" || subject.Placement == baseline.Placement)
		if r.Subject == subject.ID && r.Baseline == baseline.ID && speaks {
			c.ratios = append(c.ratios, contrasted{r, workload})
		}
	}
}

// name is what a sentence calls a system or a scenario.
type name struct {
	text  string
	prose bool // words, which begin a sentence with a capital; else an identifier, as in the tables
}

// opening is the name at the beginning of a sentence.
func (n name) opening() string {
	if n.prose {
		return phrase.Capital(n.text)
	}
	return n.text
}

// callers returns what sentences call each scenario's system: its name in words
// and its place where these tell the groups of the run apart, else the group.
func (r *Report) callers() func(*Scenario) name {
	groups := make(map[string][]string)
	for i := range r.Scenarios {
		n, group := r.systemOf(&r.Scenarios[i]).text, suite.Group(r.Scenarios[i].ID)
		if !slices.Contains(groups[n], group) {
			groups[n] = append(groups[n], group)
		}
	}
	return func(s *Scenario) name {
		if n := r.systemOf(s); len(groups[n.text]) == 1 {
			return n
		}
		return name{text: suite.Group(s.ID)}
	}
}

// systemOf names a scenario's system and place. A system without a name in words
// is called as it is where the group is named after it.
func (r *Report) systemOf(s *Scenario) name {
	n := name{text: s.System}
	if title := r.systems[s.System]; title != "" {
		n = name{title, true}
	} else if group := suite.Group(s.ID); !strings.HasPrefix(group, s.System) {
		return name{text: group} // the suite's own name for it
	}
	if s.Placement == string(suite.Colocated) {
		n.text += " on one node"
	}
	return n
}
