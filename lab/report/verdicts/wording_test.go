package verdicts

import (
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestWouldShowSaysHowOftenOfARatioThatLiesBeyond(t *testing.T) {
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
