package sentences

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

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
	*model.Comparison
	workload string
	main     bool // a headline or the median latency: brief sentences have it
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
		if (r.Verdict == model.Differs || r.Verdict == model.Suggested) && r.Ratio.Median > 0 {
			far = max(far, math.Abs(math.Log(r.Ratio.Median)))
		}
		certain = certain || r.Verdict == model.Differs
	}
	return certain, far
}

// contrasts groups the comparisons by their two systems.
func contrasts(r *model.Report) (list []*contrast) {
	call := callers(r)
	var whole []*contrast
	known := make(map[[2]string]*contrast)
	for _, pair := range r.Pairs {
		subject, baseline := r.Row(pair.Subject), r.Row(pair.Baseline)
		if subject == nil || baseline == nil {
			continue
		}
		over, under, together := model.Names(pair.Subject, pair.Baseline)
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

// add adds the headline metrics of a comparison, and each other metric with a confirmed
// difference.
func (c *contrast) add(r *model.Report, subject, baseline *model.Scenario) {
	if why := r.Apart[suite.Comparison{Subject: subject.ID, Baseline: baseline.ID}]; why != "" {
		c.absent = append(c.absent, why)
	}
	for _, s := range []*model.Scenario{subject, baseline} {
		if why := rejected.Lacks(s); why != "" {
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
		if main := verdicts.Headline(of.Metric, exchange); main || of.Verdict == model.Differs && !covered(r, of, exchange) {
			c.ratios = append(c.ratios, contrasted{of, workload, main || of.Metric == sample.LatencyP50})
		}
	}
}

// covered reports whether the same sentence confirms a difference from which this one
// follows. The CPU time of a side is stated per byte of a stream, and per packet of
// request/response: then its other units, and the capacity of a CPU, say nothing new.
// The throughput of request/response follows from the transactions.
func covered(r *model.Report, of *model.Comparison, exchange bool) bool {
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
	return slices.ContainsFunc(r.Comparisons, func(c model.Comparison) bool {
		return c.Subject == of.Subject && c.Baseline == of.Baseline && c.Metric != of.Metric && slices.Contains(by, c.Metric) && c.Verdict == model.Differs
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
func callers(r *model.Report) func(*model.Scenario) name {
	var groups phrase.Groups
	for i := range r.Scenarios {
		groups.Add(systemOf(r, &r.Scenarios[i]).text, suite.Group(r.Scenarios[i].ID))
	}
	return func(s *model.Scenario) name {
		if n := systemOf(r, s); len(groups.Of(n.text)) == 1 {
			return n
		}
		return name{text: suite.Group(s.ID)}
	}
}

// systemOf returns the title of a scenario's system with its placement. A
// system without a title has its own name, if the group has that name too.
func systemOf(r *model.Report, s *model.Scenario) name {
	n := name{text: s.System}
	if title := r.Systems[s.System]; title != "" {
		n = name{title, true}
	} else if group := suite.Group(s.ID); !strings.HasPrefix(group, s.System) {
		return name{text: group} // the suite's own name for it
	}
	if s.Placement == string(suite.Colocated) {
		n.text += " on one node"
	}
	return n
}
