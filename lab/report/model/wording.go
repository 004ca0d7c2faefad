package model

import (
	"fmt"
	"math"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
)

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
	text := fmt.Sprintf("a difference of %s or more would have been detected", quantity.Percentage(*detectable))
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
	lines.SayIf(seen[TooNoisy], "! %s: only a difference above %s would have been detected.", TooNoisy, quantity.Percentage(NoisyAbove))
	return lines
}
