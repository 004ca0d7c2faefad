package verdicts

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestTheLegendExplainsEachMarkOfATable(t *testing.T) {
	d := 0.03
	got := Legend([]RatioMark{{"a", model.Differs, &d, 2}, {"b", model.Alike, &d, 1}, {"c", model.Suggested, &d, 1.1}, {"d", model.TooFew, nil, 2}, {"e", model.TooNoisy, &d, 2}})
	want := phrase.Lines{
		"~ no difference shows (b: a difference of 3 % or more would have been detected).",
		"? suggested: the 95 % interval excludes 1, but the correction for many comparisons does not confirm the difference.",
		"… too few trials to tell a difference from chance.",
		"! too noisy to judge: only a difference above 100 % would have been detected.",
	}
	must.Equal(t, want, got)
	for i, v := range []model.Verdict{model.Alike, model.Suggested, model.TooFew, model.TooNoisy} {
		if !strings.HasPrefix(want[i], Marks[v]+" ") {
			t.Errorf("a ratio that is %s has the mark %q, the legend %q", v, Marks[v], want[i])
		}
	}
}

func TestTheTextOfALargerRatioHasTheFrequencyOfDetection(t *testing.T) {
	d := 0.03
	for ratio, want := range map[float64]string{
		1.01: "a difference of 3 % or more would have been detected", 0.98: "a difference of 3 % or more would have been detected",
		1.04: "a difference of 3 % or more would have been detected in 4 of 5 such runs", 0.96: "a difference of 3 % or more would have been detected in 4 of 5 such runs",
	} {
		if got := DetectableText(&d, ratio); got != want {
			t.Errorf("with the ratio %v the text is %q, want %q", ratio, got, want)
		}
	}
	zero := 0.0
	if got := DetectableText(&zero, 1); got != "any difference would have been detected" || DetectableText(nil, 1) != "" {
		t.Errorf("the text for a difference of 0 is %q, for an unknown difference %q", got, DetectableText(nil, 1))
	}
}

func TestOnlyTheCPUOfOneNodeIsNotComparableWithThatOfTwo(t *testing.T) {
	for m, want := range map[sample.Metric]bool{sample.SenderThroughput: true, sample.ReceiverThroughput: true, sample.SenderCPU: false, sample.Capacity: false} {
		if got := Comparable(m, &suite.Scenario{Placement: suite.Colocated}, &suite.Scenario{Placement: suite.TwoNodes}); got != want {
			t.Errorf("%s: %v, want %v", m, got, want)
		}
	}
}
