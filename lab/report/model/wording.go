package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
)

// Percent prints a ratio as "97 % [95, 99]".
func (iv Interval) Percent() string {
	scaled := Interval{Median: 100 * iv.Median, Low: 100 * iv.Low, High: 100 * iv.High, N: iv.N}
	return bracketed(scaled, 0, " %", 100)
}

// bracketed prints an interval. It starts with least decimals and adds decimals until
// its width shows. A bound that differs from a limit must not be printed like it.
func bracketed(iv Interval, least int, unit string, limits ...float64) string {
	decimals := least
	for ; decimals < least+3; decimals++ {
		step := math.Pow10(-decimals)
		misread := slices.ContainsFunc(limits, func(limit float64) bool { return reads(iv.Low, limit, step) || reads(iv.High, limit, step) })
		if iv.High-iv.Low >= 2*step && !misread {
			break
		}
		if iv.Low == iv.High && decimals > least {
			break // no width to show
		}
	}
	number := func(v float64) string { return fmt.Sprintf("%.*f", decimals, v) }
	if iv.N == 1 {
		return number(iv.Median) + unit
	}
	return fmt.Sprintf("%s%s [%s, %s]", number(iv.Median), unit, number(iv.Low), number(iv.High))
}

// reads reports whether v differs from limit, but rounds to it at this step.
func reads(v, limit, step float64) bool {
	return v != limit && math.Abs(v-limit) < step/2
}

// Percentage prints a share with two significant digits: 0.031 is "3.1 %".
func Percentage(v float64) string {
	if v *= 100; math.Abs(v) >= 99.5 {
		return fmt.Sprintf("%.0f %%", v)
	}
	return fmt.Sprintf("%.2g %%", v)
}

// detectableText states the smallest detectable difference: "a difference of 3.1 % or more
// would have been detected"; "" if it is not known. The measured ratio can differ by more
// and still show no certain difference. Then the text adds the probability of detection.
func detectableText(detectable *float64, ratio float64) string {
	switch {
	case detectable == nil || *detectable < 0:
		return ""
	case *detectable == 0: // the ratio did not vary at all
		return "any difference would have been detected"
	}
	text := fmt.Sprintf("a difference of %s or more would have been detected", Percentage(*detectable))
	if math.Abs(math.Log(ratio)) >= math.Log1p(*detectable) {
		text += " in 4 of 5 such runs" // the power is 0.8
	}
	return text
}

// marks has the signs after ratios in tables.
var marks = map[Verdict]string{Alike: "~", Suggested: "?", TooFew: "…", TooNoisy: "!"}

// ratioMark is a ratio whose table cell has a mark. name is the name of the ratio.
type ratioMark struct {
	name       string
	verdict    Verdict
	detectable *float64
	ratio      float64
}

// legend explains the marks that occur, one sentence each. The sentence of "~" names
// the smallest detectable difference of each ratio.
func legend(list []ratioMark) (lines phrase.Lines) {
	seen := make(map[Verdict]bool)
	var would []string
	for _, m := range list {
		seen[m.verdict] = true
		if text := detectableText(m.detectable, m.ratio); m.verdict == Alike && text != "" {
			would = append(would, m.name+": "+text)
		}
	}
	text := strings.Join(would, "; ")
	if text != "" {
		text = " (" + text + ")"
	}
	lines.SayIf(seen[Alike], "~ no difference shows%s.", text)
	lines.SayIf(seen[Suggested], "? suggested: the 95 %% interval excludes 1, but the correction for many comparisons does not confirm the difference.")
	lines.SayIf(seen[TooFew], "… too few trials to tell a difference from chance.")
	lines.SayIf(seen[TooNoisy], "! %s: only a difference above %s would have been detected.", TooNoisy, Percentage(NoisyAbove))
	return lines
}
