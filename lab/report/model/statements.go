package model

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// statement has the words for a difference in one metric: "carries 29 % less than the
// bridge [26, 32]".
type statement struct{ verb, fewer, noun, what string }

var statements = map[sample.Metric]statement{
	sample.Throughput:           {"carries", "less", "", "throughput"},
	sample.Transactions:         {"completes", "fewer", " transactions", "transactions"},
	sample.Capacity:             {"has", "less", " capacity", "the capacity"},
	sample.LoadThroughput:       {"carries", "less", " beside the requests", "the throughput beside the requests"},
	sample.LatencyP50:           {"has", "less", " median latency", "the median latency"},
	sample.LatencyP99:           {"has", "less", " latency p99", "the latency p99"},
	sample.SenderCPU:            {"uses", "less", " CPU on the sender", "the sender's CPU"},
	sample.ReceiverCPU:          {"uses", "less", " CPU on the receiver", "the receiver's CPU"},
	sample.SenderCPUPerByte:     {"costs the sender", "less", " CPU per byte", "the sender's CPU per byte"},
	sample.ReceiverCPUPerByte:   {"costs the receiver", "less", " CPU per byte", "the receiver's CPU per byte"},
	sample.SenderCPUPerPacket:   {"costs the sender", "less", " CPU per packet", "the sender's CPU per packet"},
	sample.ReceiverCPUPerPacket: {"costs the receiver", "less", " CPU per packet", "the receiver's CPU per packet"},
}

// clause returns the words for one ratio. than is the name of the baseline;
// empty if the sentence has named it already. For the brackets see statistics.
// A brief clause has no interval.
func (c *Comparison) clause(than string, brief bool) string {
	s, word := statements[c.Metric], "more"
	if c.Ratio.Median < 1 {
		word = s.fewer
	}
	figure, bounds := c.change()
	said := c.statistics(bounds)
	if brief {
		said = map[Verdict]string{Suggested: " (suggested)"}[c.Verdict]
	}
	return s.verb + " " + figure + " " + word + s.noun + than + said
}

// change prints a ratio as a change in percent, "3.6 %", and its bounds, "2.4,
// 4.1". It omits the sign if the clause says "more" or "less".
func (c *Comparison) change() (figure, bounds string) {
	iv := quantity.Interval{Median: 100 * (c.Ratio.Median - 1), Low: 100 * (c.Ratio.Low - 1), High: 100 * (c.Ratio.High - 1), N: c.Ratio.N}
	if iv.Median < 0 && !c.Verdict.Equal() {
		iv.Median, iv.Low, iv.High = -iv.Median, -iv.High, -iv.Low
	}
	figure, bounds, _ = strings.Cut(strings.ReplaceAll(quantity.Bracketed(iv, 0, " %", 0), "-", "−"), " [")
	return figure, strings.TrimSuffix(bounds, "]")
}

// statistics returns the bounds of a change in brackets. A verdict other than
// "differs" follows them: " [2.4, 4.1; suggested]".
func (c *Comparison) statistics(bounds string) string {
	verdict := ""
	switch c.Verdict {
	case Suggested:
		verdict = "suggested"
	case TooFew:
		verdict = phrase.Count(c.Ratio.N, "trial") + ", too few to tell"
	case Alike:
		bounds += " %"
		verdict = detectableText(c.Detectable, c.Ratio.Median)
	case TooNoisy:
		bounds += " %"
	}
	parts := slices.DeleteFunc([]string{bounds, verdict}, func(part string) bool { return part == "" })
	if len(parts) == 0 {
		return ""
	}
	return " [" + strings.Join(parts, "; ") + "]"
}

// contrast has the content of one sentence: the ratios of one system or scenario to its
// baseline, for one workload or for all.
type contrast struct {
	subject, baseline name
	workload          string
	ratios            []contrasted
	absent            []string // why a workload has no ratio
}

// contrasted is a ratio with its workload.
type contrasted struct {
	*Comparison
	workload string
	main     bool // a headline or the median latency: brief sentences have it
}

// certainty is the order of the verdicts in a sentence.
var certainty = []Verdict{Differs, Suggested, TooFew, Alike, TooNoisy}

// sentence lists the differences between the subject and its baseline, the confirmed ones
// first, then the metrics without a difference, and those too noisy to judge. A brief
// sentence has no intervals, and only the main figures and the median latency.
func (c *contrast) sentence(brief bool) string {
	if len(c.ratios) == 0 {
		return c.subject.opening() + " cannot be compared with " + c.baseline.text + ": " + cmp.Or(strings.Join(c.absent, ", "), "no block has figures of both") + "."
	}
	slices.SortStableFunc(c.ratios, func(a, b contrasted) int { // the traffic before its costs
		return cmp.Or(cmp.Compare(slices.Index(certainty, a.Verdict), slices.Index(certainty, b.Verdict)), after(a.Metric.Side() != "", b.Metric.Side() != ""))
	})
	ratios := c.ratios
	if brief {
		main := slices.DeleteFunc(slices.Clone(ratios), func(r contrasted) bool { return !r.main })
		if len(main) > 0 {
			ratios = main
		}
	}
	var says, alike, noisy, few []string
	than := " than " + c.baseline.text
	for _, r := range ratios {
		what := statements[r.Metric].what
		if r.Verdict.Equal() && !brief {
			_, bounds := r.change()
			what += r.statistics(bounds)
		}
		switch r.Verdict {
		case Alike:
			alike = append(alike, what)
		case TooNoisy:
			noisy = append(noisy, what)
		case TooFew:
			if brief {
				few = append(few, what)
				continue
			}
			fallthrough
		default:
			says, than = append(says, r.clause(than, brief)), ""
		}
	}
	in, subject := "", c.subject.opening()
	if c.workload != "" {
		in, subject = "In "+c.workload+", ", c.subject.text
	}
	var parts []string
	if len(says) > 0 {
		parts = append(parts, subject+" "+phrase.And(says))
	}
	if len(alike) > 0 {
		parts = append(parts, "no difference shows in "+phrase.And(alike))
	}
	switch {
	case len(few) > 0 && len(few) == len(ratios):
		parts = append(parts, "there are too few trials to tell a difference")
	case len(few) > 0:
		parts = append(parts, "there are too few trials to tell a difference in "+phrase.And(few))
	}
	switch {
	case brief && len(noisy) > 0 && len(noisy) == len(ratios):
		parts = append(parts, "the figures are "+string(TooNoisy))
	case len(noisy) > 0:
		parts = append(parts, "the figures of "+phrase.And(noisy)+" are "+string(TooNoisy))
	}
	if len(says) == 0 {
		parts[0] = "between " + c.subject.text + " and " + c.baseline.text + " " + parts[0]
	}
	text := in + strings.Join(parts, "; ") + "."
	if len(says) == 0 {
		return phrase.Capital(text)
	}
	return text
}

// byWorkload splits a contrast that has a metric of several workloads into one
// contrast for each workload.
func (c *contrast) byWorkload() (list []*contrast) {
	metrics := make(map[sample.Metric]bool)
	for _, r := range c.ratios {
		metrics[r.Metric] = true
		i := slices.IndexFunc(list, func(o *contrast) bool { return o.workload == r.workload })
		if i < 0 {
			i, list = len(list), append(list, &contrast{subject: c.subject, baseline: c.baseline, workload: r.workload})
		}
		list[i].ratios = append(list[i].ratios, r)
	}
	if len(metrics) == len(c.ratios) {
		return []*contrast{c}
	}
	return list
}

// weight orders contrasts: those with a certain difference first, and among
// equals the one with the largest difference first.
func (c *contrast) weight() (certain bool, far float64) {
	for _, r := range c.ratios {
		if (r.Verdict == Differs || r.Verdict == Suggested) && r.Ratio.Median > 0 {
			far = max(far, math.Abs(math.Log(r.Ratio.Median)))
		}
		certain = certain || r.Verdict == Differs
	}
	return certain, far
}

// contrasts groups the comparisons by their two systems.
func contrasts(r *Report) (list []*contrast) {
	call := r.callers()
	var whole []*contrast
	known := make(map[[2]string]*contrast)
	for _, pair := range r.pairs {
		subject, baseline := r.Row(pair.Subject), r.Row(pair.Baseline)
		if subject == nil || baseline == nil {
			continue
		}
		over, under, together := Names(pair.Subject, pair.Baseline)
		key := [2]string{over, under}
		c := known[key]
		if c == nil {
			c = &contrast{subject: name{text: over}, baseline: name{text: under}}
			if together {
				c.subject, c.baseline = call(subject), call(baseline)
			}
			known[key], whole = c, append(whole, c)
		}
		c.add(r, subject, baseline)
	}
	for _, c := range whole {
		list = append(list, c.byWorkload()...)
	}
	return list
}

// Names returns the names of the two sides of a comparison. If the scenarios differ
// only in their groups, the names are the groups and grouped is true. Otherwise they
// are the ids.
func Names(subject, baseline string) (a, b string, grouped bool) {
	if suite.Group(subject) != suite.Group(baseline) && suite.Part(subject) == suite.Part(baseline) {
		return suite.Group(subject), suite.Group(baseline), true
	}
	return subject, baseline, false
}

// add adds the headline metrics of a comparison, and each other metric with a confirmed
// difference.
func (c *contrast) add(r *Report, subject, baseline *Scenario) {
	if why := r.apart[suite.Comparison{Subject: subject.ID, Baseline: baseline.ID}]; why != "" {
		c.absent = append(c.absent, why)
	}
	for _, s := range []*Scenario{subject, baseline} {
		if why := s.Lacks(); why != "" {
			c.absent = append(c.absent, s.ID+" "+why)
		}
	}
	workload := cmp.Or(suite.Part(subject.ID), subject.Workload.Name)
	exchange := subject.Transactions != nil
	for i := range r.Comparisons {
		of := &r.Comparisons[i]
		if of.Subject != subject.ID || of.Baseline != baseline.ID {
			continue
		}
		if main := Headline(of.Metric, exchange); main || of.Verdict == Differs && !r.covered(of, exchange) {
			c.ratios = append(c.ratios, contrasted{of, workload, main || of.Metric == sample.LatencyP50})
		}
	}
}

// covered reports whether the same sentence confirms a difference from which this one
// follows. The CPU time of a side is stated per byte of a stream, and per packet of
// request/response: then its other units, and the capacity of a CPU, say nothing new.
// The throughput of request/response follows from the transactions.
func (r *Report) covered(of *Comparison, exchange bool) bool {
	sender, receiver := sample.SenderCPUPerByte, sample.ReceiverCPUPerByte
	if exchange {
		sender, receiver = sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket
	}
	var by []sample.Metric
	switch of.Metric {
	case sample.Throughput:
		by = []sample.Metric{sample.Transactions}
	case sample.Capacity:
		by = []sample.Metric{sender, receiver}
	case sample.SenderCPU, sample.SenderCPUPerByte, sample.SenderCPUPerPacket:
		by = []sample.Metric{sender}
	case sample.ReceiverCPU, sample.ReceiverCPUPerByte, sample.ReceiverCPUPerPacket:
		by = []sample.Metric{receiver}
	}
	return slices.ContainsFunc(r.Comparisons, func(c Comparison) bool {
		return c.Subject == of.Subject && c.Baseline == of.Baseline && c.Metric != of.Metric && slices.Contains(by, c.Metric) && c.Verdict == Differs
	})
}

// name returns the name of a system or scenario within a sentence.
type name struct {
	text  string
	prose bool // text is words: capital at the start of a sentence; else an identifier
}

// opening returns the name at the beginning of a sentence, with a capital
// letter.
func (n name) opening() string {
	if n.prose {
		return phrase.Capital(n.text)
	}
	return n.text
}

// callers returns the name of each scenario's system in sentences: the system's
// title and placement. If two groups of the run would get the same name, it is
// the group.
func (r *Report) callers() func(*Scenario) name {
	var groups phrase.Groups
	for i := range r.Scenarios {
		groups.Add(r.systemOf(&r.Scenarios[i]).text, suite.Group(r.Scenarios[i].ID))
	}
	return func(s *Scenario) name {
		if n := r.systemOf(s); len(groups.Of(n.text)) == 1 {
			return n
		}
		return name{text: suite.Group(s.ID)}
	}
}

// systemOf returns the title of a scenario's system with its placement. A
// system without a title has its own name, if the group has that name too.
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
