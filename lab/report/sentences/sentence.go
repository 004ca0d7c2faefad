package sentences

import (
	"cmp"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
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
func clause(c *model.Comparison, than string, brief bool) string {
	s, word := statements[c.Metric], "more"
	if c.Ratio.Median < 1 {
		word = s.fewer
	}
	figure, bounds := change(c)
	said := statistics(c, bounds)
	if brief {
		said = map[model.Verdict]string{model.Suggested: " (suggested)"}[c.Verdict]
	}
	return s.verb + " " + figure + " " + word + s.noun + than + said
}

// change prints a ratio as a change in percent, "3.6 %", and its bounds, "2.4,
// 4.1". It omits the sign if the clause says "more" or "less".
func change(c *model.Comparison) (figure, bounds string) {
	iv := quantity.Interval{Median: 100 * (c.Ratio.Median - 1), Low: 100 * (c.Ratio.Low - 1), High: 100 * (c.Ratio.High - 1), N: c.Ratio.N}
	if iv.Median < 0 && !c.Verdict.Equal() {
		iv.Median, iv.Low, iv.High = -iv.Median, -iv.High, -iv.Low
	}
	figure, bounds, _ = strings.Cut(strings.ReplaceAll(quantity.Bracketed(iv, 0, " %", 0), "-", "−"), " [")
	return figure, strings.TrimSuffix(bounds, "]")
}

// statistics returns the bounds of a change in brackets. A verdict other than
// "differs" follows them: " [2.4, 4.1; suggested]".
func statistics(c *model.Comparison, bounds string) string {
	verdict := ""
	switch c.Verdict {
	case model.Suggested:
		verdict = "suggested"
	case model.TooFew:
		verdict = phrase.Count(c.Ratio.N, "trial") + ", too few to tell"
	case model.Alike:
		bounds += " %"
		verdict = verdicts.DetectableText(c.Detectable, c.Ratio.Median)
	case model.TooNoisy:
		bounds += " %"
	}
	parts := slices.DeleteFunc([]string{bounds, verdict}, func(part string) bool { return part == "" })
	if len(parts) == 0 {
		return ""
	}
	return " [" + strings.Join(parts, "; ") + "]"
}

// certainty is the order of the verdicts in a sentence.
var certainty = []model.Verdict{model.Differs, model.Suggested, model.TooFew, model.Alike, model.TooNoisy}

// sentence lists the differences between the subject and its baseline, the confirmed ones
// first, then the metrics without a difference, and those too noisy to judge. A brief
// sentence has no intervals, and only the main figures and the median latency.
func (c *contrast) sentence(brief bool) string {
	if len(c.ratios) == 0 {
		return c.subject.opening() + " cannot be compared with " + c.baseline.text + ": " + cmp.Or(strings.Join(c.absent, ", "), "no block has figures of both") + "."
	}
	slices.SortStableFunc(c.ratios, func(a, b contrasted) int { // the traffic before its costs
		return cmp.Or(cmp.Compare(slices.Index(certainty, a.Verdict), slices.Index(certainty, b.Verdict)), model.After(a.Metric.Side() != "", b.Metric.Side() != ""))
	})
	ratios := c.ratios
	if brief {
		main := slices.DeleteFunc(slices.Clone(ratios), func(r contrasted) bool { return !r.main })
		if len(main) > 0 {
			ratios = main
		}
	}
	says, alike, noisy, few := c.clauses(ratios, brief)
	in, subject := "", c.subject.opening()
	if c.workload != "" {
		in, subject = "In "+c.workload+", ", c.subject.text
	}
	var parts []string
	if len(says) > 0 {
		parts = append(parts, subject+" "+phrase.And(says))
	}
	if len(alike) > 0 {
		parts = append(parts, model.NoDifference+" in "+phrase.And(alike))
	}
	switch {
	case len(few) > 0 && len(few) == len(ratios):
		parts = append(parts, "there are too few trials to tell a difference")
	case len(few) > 0:
		parts = append(parts, "there are too few trials to tell a difference in "+phrase.And(few))
	}
	switch {
	case brief && len(noisy) > 0 && len(noisy) == len(ratios):
		parts = append(parts, "the figures are "+string(model.TooNoisy))
	case len(noisy) > 0:
		parts = append(parts, "the figures of "+phrase.And(noisy)+" are "+string(model.TooNoisy))
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

// clauses returns a clause or the metric of each ratio, grouped by its verdict. The first clause names the baseline.
func (c *contrast) clauses(ratios []contrasted, brief bool) (says, alike, noisy, few []string) {
	than := " than " + c.baseline.text
	for _, r := range ratios {
		what := statements[r.Metric].what
		if r.Verdict.Equal() && !brief {
			_, bounds := change(r.Comparison)
			what += statistics(r.Comparison, bounds)
		}
		switch r.Verdict {
		case model.Alike:
			alike = append(alike, what)
		case model.TooNoisy:
			noisy = append(noisy, what)
		case model.TooFew:
			if brief {
				few = append(few, what)
				continue
			}
			fallthrough
		default:
			says, than = append(says, clause(r.Comparison, than, brief)), ""
		}
	}
	return says, alike, noisy, few
}
