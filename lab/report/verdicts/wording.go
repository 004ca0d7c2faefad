package verdicts

import (
	"fmt"
	"math"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
)

// DetectableText states the smallest detectable difference: "a difference of 3.1 % or more
// would have been detected"; "" if it is not known. The measured ratio can differ by more
// and still show no certain difference. Then the text adds the probability of detection.
func DetectableText(detectable *float64, ratio float64) string {
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

// Marks has the signs after ratios in tables.
var Marks = map[model.Verdict]string{model.Alike: "~", model.Suggested: "?", model.TooFew: "…", model.TooNoisy: "!"}

// RatioMark is a ratio whose table cell has a mark. name is the name of the ratio.
type RatioMark struct {
	Name       string
	Verdict    model.Verdict
	Detectable *float64
	Ratio      float64
}

// Legend explains the marks that occur, one sentence each. The sentence of "~" names
// the smallest detectable difference of each ratio.
func Legend(list []RatioMark) (lines phrase.Lines) {
	seen := make(map[model.Verdict]bool)
	var would []string
	for _, m := range list {
		seen[m.Verdict] = true
		if text := DetectableText(m.Detectable, m.Ratio); m.Verdict == model.Alike && text != "" {
			would = append(would, m.Name+": "+text)
		}
	}
	text := strings.Join(would, "; ")
	if text != "" {
		text = " (" + text + ")"
	}
	lines.SayIf(seen[model.Alike], "~ %s%s.", model.NoDifference, text)
	lines.SayIf(seen[model.Suggested], "? suggested: the 95 %% interval excludes 1, but the correction for many comparisons does not confirm the difference.")
	lines.SayIf(seen[model.TooFew], "… too few trials to tell a difference from chance.")
	lines.SayIf(seen[model.TooNoisy], "! %s: only a difference above %s would have been detected.", model.TooNoisy, quantity.Percentage(model.NoisyAbove))
	return lines
}
