package report

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// mostWords is how long a finding may be, figures not counted.
const mostWords = 45

// words counts what there is to read in a text; figures stand beside them.
func words(text string) int {
	n := 0
	for _, field := range strings.Fields(text) {
		if strings.ContainsFunc(field, unicode.IsLetter) {
			n++
		}
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
		return fmt.Sprintf("%s cannot be compared with %s: %s.", c.subject.opening(), c.baseline.text, strings.Join(why, ", "))
	}
	return c.claim() + c.doubts()
}

// claim is the sentence without the doubts: with every detail, or without
// those that the table has where it were too long.
func (c *contrast) claim() string {
	if full := (teller{contrast: c}).sentence(); words(full) <= mostWords {
		return full
	}
	return (teller{contrast: c, brief: true}).sentence()
}

// teller puts a contrast into words. Brief, it leaves to the table what is
// known of each ratio that is not sure.
type teller struct {
	*contrast
	brief bool
}

func (t teller) sentence() string {
	var traffic, processors, suggested, alike []string
	var unseen []contrasted // the ratios of alike
	var spoken sample.Metric
	for _, r := range t.ratios {
		switch {
		case r.Verdict == Alike:
			alike, unseen = append(alike, t.likeness(r)), append(unseen, r)
		case r.Verdict == Suggested && !t.tentative():
			suggested = append(suggested, t.suggestion(r))
		case r.Metric == sample.Throughput || r.Metric == sample.Transactions:
			again := len(traffic) > 0 && spoken == r.Metric
			traffic, spoken = append(traffic, t.share(r, again)), r.Metric
		default:
			processors = append(processors, t.spending(r, len(processors) == 0))
		}
	}
	var parts []string
	if len(traffic) > 0 {
		parts = append(parts, t.subject.text+" "+phrase.And(traffic))
	}
	if len(processors) > 0 {
		lead := ""
		if len(traffic) == 0 { // nothing has named the two yet
			lead = "with " + t.subject.text + " instead of " + t.baseline.text + " "
		}
		parts = append(parts, lead+phrase.And(processors))
	}
	if len(suggested) > 0 {
		parts = append(parts, t.between(len(parts) == 0)+"a difference is suggested, no more, in "+phrase.And(suggested))
	}
	if len(alike) > 0 {
		text := t.between(len(parts) == 0) + "no difference shows in " + phrase.And(alike)
		if t.brief {
			text += together(unseen)
		}
		parts = append(parts, text)
	}
	return t.open(strings.Join(parts, "; "), len(traffic) > 0) + "."
}

// open begins the sentence, of which named tells that the subject stands first.
func (t teller) open(text string, named bool) string {
	basis, in := t.basis(), ""
	if t.workload != "" {
		in = "in " + t.workload + ", "
	}
	switch {
	case basis != "" && t.tentative():
		return phrase.Capital(basis + in + text)
	case basis != "" || in != "":
		return phrase.Capital(in + basis + text)
	case named && !t.subject.prose:
		return text
	}
	return phrase.Capital(text)
}

// basis opens the sentence where all of it is uncertain, or rests on too few
// trials.
func (t teller) basis() string {
	switch n := t.fewest(); {
	case t.tentative() && t.among > 1:
		return fmt.Sprintf("suggested, but not certain among %d comparisons: ", t.among)
	case t.tentative():
		return "suggested, but not certain: "
	case !t.sparse():
		return ""
	case n == 1:
		return "in 1 trial, too few for a 95 % interval, "
	default:
		return fmt.Sprintf("in %d trials, too few for a 95 %% interval (brackets hold the lowest and highest), ", n)
	}
}

// few reports whether the ratio rests on too few trials for its interval.
func (r contrasted) few() bool { return r.Ratio.N < stats.MinimumTrials(stats.Level) }

// caveat marks one ratio of too few trials among others of enough.
func (t teller) caveat(r contrasted) string {
	if !r.few() || t.sparse() {
		return ""
	}
	return fmt.Sprintf(" (in %s, too few for a 95 %% interval)", phrase.Count(r.Ratio.N, "trial"))
}

func (t teller) between(first bool) string {
	if first {
		return "between " + t.subject.text + " and " + t.baseline.text + " "
	}
	return ""
}

// share: "carries 97 % [95, 99] of raw's throughput", and again of the same
// "95 % [93, 97]".
func (t teller) share(r contrasted, again bool) string {
	if again {
		return percent(r.Ratio) + t.in(r) + t.caveat(r)
	}
	verb, noun := "carries", "throughput"
	if r.Metric == sample.Transactions {
		verb, noun = "completes", "transactions"
	}
	return fmt.Sprintf("%s %s of %s's %s%s%s", verb, percent(r.Ratio), t.baseline.text, noun, t.in(r), t.caveat(r))
}

// spending: "the sender spends 1.08× [1.05, 1.11] the CPU per byte", and after
// the first "the receiver 1.02× [1.01, 1.04]".
func (t teller) spending(r contrasted, first bool) string {
	if first {
		return fmt.Sprintf("%s spends %s the CPU per byte%s%s", side(r.Metric), factor(r.Ratio), t.in(r), t.caveat(r))
	}
	return fmt.Sprintf("%s %s%s%s", side(r.Metric), factor(r.Ratio), t.in(r), t.caveat(r))
}

// likeness: "throughput (99 % [97, 102], n = 6; a difference of 3.1 % or more
// would have shown)", and in brief "throughput".
func (t teller) likeness(r contrasted) string {
	what, figure := r.spoken()
	if t.brief {
		return what + t.in(r)
	}
	return fmt.Sprintf("%s%s (%s, n = %d%s)", what, t.in(r), figure, r.Ratio.N, wouldShow("; ", r.Detectable, r.Ratio.Median))
}

// suggestion: "throughput (98 % [97, 99], n = 8, p = 0.03)", and in brief
// "throughput (98 % [97, 99])".
func (t teller) suggestion(r contrasted) string {
	what, figure := r.spoken()
	n, p := fmt.Sprintf(", n = %d", r.Ratio.N), ""
	if r.P != nil {
		p = ", " + pValue(*r.P)
	}
	if t.brief {
		n, p = "", ""
	}
	return fmt.Sprintf("%s%s (%s%s%s)", what, t.in(r), figure, n, p)
}

// spoken is what a sentence calls the metric, and how it prints its ratio.
func (r contrasted) spoken() (what, figure string) {
	switch r.Metric {
	case sample.Throughput:
		return "throughput", percent(r.Ratio)
	case sample.Transactions:
		return "transactions", percent(r.Ratio)
	}
	return side(r.Metric) + "'s CPU per byte", factor(r.Ratio)
}

func side(m sample.Metric) string {
	if m == sample.SenderCPUPerByte {
		return "the sender"
	}
	return "the receiver"
}

// in names the workload where the contrast has the metric of several.
func (t teller) in(r contrasted) string {
	if !t.several(r.Metric) {
		return ""
	}
	return " in " + r.workload
}

// together says of all ratios in one what would have shown: " (a difference of
// 13 to 15 % or more would have shown)"; empty where that is not known of each.
func together(ratios []contrasted) string {
	low, high, often := math.Inf(1), 0.0, ""
	for _, r := range ratios {
		d := r.Detectable
		if d == nil || *d < 0 {
			return ""
		}
		if *d == 0 { // the ratio did not vary at all
			continue
		}
		low, high = min(low, *d), max(high, *d)
		if outside(*d, r.Ratio.Median) {
			often = oftenShown
		}
	}
	if high == 0 {
		return " (any difference would have shown)"
	}
	least := percentage(high)
	if from := percentage(low); from != least {
		least = strings.TrimSuffix(from, " %") + " to " + least
	}
	return " (a difference of " + least + " or more would have shown" + often + ")"
}
