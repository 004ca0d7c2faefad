package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// contrast is one system against another, or one scenario against another,
// over all the workloads that a finding speaks of.
type contrast struct {
	subject, baseline name
	workload          string // the one that it is of, where it is a part of a longer one
	ratios            []contrasted
	among             int // headline comparisons that are corrected for one another
	trials            []trialCount
	absent            []string // why a workload has no ratio
}

// contrasted is a ratio that a sentence speaks of, and the workload it is of.
type contrasted struct {
	Comparison
	workload string
}

// trialCount is how many of the subject's trials in a workload have no figures
// that count.
type trialCount struct {
	workload string
	failed   int
}

// add takes in the comparison of two scenarios.
func (c *contrast) add(all []Comparison, subject, baseline *Scenario) {
	workload := workloadOf(subject)
	c.trials = append(c.trials, trialCount{workload, subject.Failed})
	for _, s := range []*Scenario{subject, baseline} {
		if s.Skipped != "" {
			c.absent = append(c.absent, s.ID+" was skipped")
		} else if why := s.Unmeasured(); why != "" {
			c.absent = append(c.absent, s.ID+" "+why)
		} else if s.Trials == 0 {
			c.absent = append(c.absent, s.ID+" has no figures")
		}
	}
	for _, entry := range all {
		if entry.Subject == subject.ID && entry.Baseline == baseline.ID && speaks(entry.Metric, subject, baseline) {
			c.ratios = append(c.ratios, contrasted{entry, workload})
		}
	}
}

// workloadOf is what tells a scenario from the others of its group: the part
// of its id after "/", else the name of its workload.
func workloadOf(s *Scenario) string {
	if part := suite.Part(s.ID); part != "" {
		return part
	}
	return s.Workload.Name
}

// mostNamed is how many figures one sentence gives the name of a workload.
const mostNamed = 4

// readable reports whether a person can take the contrast in as one sentence.
func (c *contrast) readable() bool {
	named := 0
	for _, r := range c.ratios {
		if c.several(r.Metric) {
			named++
		}
	}
	return named <= mostNamed && words(c.claim()) <= mostWords
}

// parts is the contrast itself where it can be read as one sentence, else one
// for each workload with a ratio; what is absent stands at the last.
func (c *contrast) parts() []*contrast {
	var list []*contrast
	of := make(map[string]*contrast)
	for _, r := range c.ratios {
		part := of[r.workload]
		if part == nil {
			part = &contrast{subject: c.subject, baseline: c.baseline, workload: r.workload, among: c.among}
			of[r.workload] = part
			list = append(list, part)
		}
		part.ratios = append(part.ratios, r)
	}
	if len(list) < 2 || c.readable() {
		return []*contrast{c}
	}
	last := list[len(list)-1]
	last.absent = c.absent
	for _, t := range c.trials {
		part := of[t.workload]
		if part == nil {
			part = last
		}
		part.trials = append(part.trials, t)
	}
	return list
}

// weight orders contrasts by how far the farthest ratio that differs, or seems
// to, lies from 1.
func (c *contrast) weight() float64 {
	far := 0.0
	for _, r := range c.ratios {
		if (r.Verdict == Differs || r.Verdict == Suggested) && r.Ratio.Median > 0 {
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

// sure reports whether a ratio of the contrast differs beyond doubt.
func (c *contrast) sure() bool {
	return slices.ContainsFunc(c.ratios, func(r contrasted) bool { return r.Verdict == Differs })
}

// tentative reports whether no ratio of the contrast is sure, and some are
// suggested: the whole sentence then is.
func (c *contrast) tentative() bool {
	return !c.sure() && slices.ContainsFunc(c.ratios, func(r contrasted) bool { return r.Verdict == Suggested })
}

// sparse reports whether every ratio rests on too few trials for its interval.
func (c *contrast) sparse() bool {
	return !slices.ContainsFunc(c.ratios, func(r contrasted) bool { return !r.few() })
}

// several reports whether the contrast has the metric of several workloads.
func (c *contrast) several(m sample.Metric) bool {
	n := 0
	for _, r := range c.ratios {
		if r.Metric == m {
			n++
		}
	}
	return n > 1
}

// doubts says which of the subject's trials, and which scenarios, are missing.
func (c *contrast) doubts() string {
	doubts := c.absent
	failed := 0
	for _, t := range c.trials {
		failed += t.failed
	}
	if failed > 0 {
		doubts = append([]string{fmt.Sprintf("%s of %s yielded no figures that count", phrase.Count(failed, "trial"), c.subject.text)}, doubts...)
	}
	if len(doubts) == 0 {
		return ""
	}
	return " (" + strings.Join(doubts, "; ") + ".)"
}
