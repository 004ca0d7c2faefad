package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Compared gives the tests of package model_test access to compared.
var Compared = compared

// Denied lists the costs of a ladder with a sentence that contradicts the verdict.
func Denied(l Ladder) []string {
	var list []string
	for i := range l.Steps {
		g := &l.Steps[i]
		for _, c := range g.Costs {
			if c.Ratio == nil {
				continue
			}
			part := &Ladder{Steps: []Rung{{Scenario: g.From, Name: "below"}, {Scenario: g.Scenario, Name: "it", From: g.From, Costs: []Cost{c}}}}
			said := part.sentences()[0]
			if none := strings.Contains(said, "no difference shows"); none != (c.Verdict == Alike) {
				list = append(list, fmt.Sprintf("%s of %s is %s, and said as %q", c.Metric, g.Scenario, c.Verdict, said))
			}
		}
	}
	return list
}

// Misspoken lists the comparisons with a sentence that contradicts the verdict.
func Misspoken(r *Report) []string {
	var list []string
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		if statements[c.Metric].verb == "" {
			continue
		}
		alone := &contrast{subject: name{text: "s"}, baseline: name{text: "b"}, ratios: []contrasted{{c, "w", true}}}
		said := alone.sentence(false)
		if none := strings.Contains(said, "no difference shows"); none != (c.Verdict == Alike) {
			list = append(list, fmt.Sprintf("%s of %s is %s, and said as %q", c.Metric, c.Subject, c.Verdict, said))
		}
		if only := strings.Contains(said, "uggested"); only != (c.Verdict == Suggested) {
			list = append(list, fmt.Sprintf("%s of %s is %s, and said as %q", c.Metric, c.Subject, c.Verdict, said))
		}
	}
	return list
}

func TestWhatIsSureIsSaidBeforeWhatIsDearButSuggested(t *testing.T) {
	sure := &contrast{ratios: []contrasted{{Comparison: &Comparison{Verdict: Differs, Ratio: quantity.Interval{Median: 0.9, N: 10}}}}}
	dear := &contrast{ratios: []contrasted{{Comparison: &Comparison{Verdict: Suggested, Ratio: quantity.Interval{Median: 0.2, N: 10}}}}}
	if got := surest([]*contrast{dear, dear, dear, dear, sure}); len(got) != mostFindings || got[0] != sure {
		t.Errorf("%d contrasts %v, want %d, the certain difference first", len(got), got, mostFindings)
	}
}

func TestNamesBeginASentenceWithACapitalOnlyWhereTheyAreWords(t *testing.T) {
	rows := []Scenario{
		{ID: "bridge/stream", System: "bridge"}, {ID: "vrouter/stream", System: "vrouter-mpls-udp"},
		{ID: "vrouter-vxlan-colocated/stream", System: "vrouter-vxlan", Placement: string(suite.Colocated)},
		{ID: "fast/stream", System: "vxlan"}, {ID: "slow/stream", System: "vxlan"}, {ID: "raw/stream", System: "raw"},
	}
	call := (&Report{Scenarios: rows, systems: reporttest.Systems()}).callers()
	for i, want := range []string{"The bridge", "vrouter", "vrouter-vxlan on one node", "fast", "slow", "Raw"} {
		if got := call(&rows[i]).opening(); got != want {
			t.Errorf("%s is %q, want %q", rows[i].ID, got, want)
		}
	}
}

func TestWorstGateIsFarthestBeyondAnUpperOrALowerLimit(t *testing.T) {
	for _, c := range []struct{ worse, better sample.Gate }{
		{sample.Gate{Value: 31, Limit: 3}, sample.Gate{Value: 12, Limit: 3}},
		{sample.Gate{Value: 40, Limit: 90}, sample.Gate{Value: 85, Limit: 90}},
		{sample.Gate{Value: 5}, sample.Gate{Value: 1}},
	} {
		if beyond(c.worse) <= beyond(c.better) {
			t.Errorf("%+v is not farther beyond its limit than %+v", c.worse, c.better)
		}
	}
}

func TestServersOfAllPairsStartBeforeTheClients(t *testing.T) {
	lines := byHand("my suite", "bridge/x", []sample.Command{
		{Role: "server", On: "b/c1", Argv: []string{"netserver", "-p", "4000"}},
		{Role: "client1", On: "a/c1", Argv: []string{"netperf", "-t", "A B"}},
		{Role: "server 2", On: "b/c2", Argv: []string{"netserver", "-p", "4000"}},
		{Role: "client1 2", On: "a/c2", Argv: []string{"netperf", "$(rm)"}},
	})
	want := []string{
		"windtunnel lab up 'my suite' --scenario bridge/x",
		"windtunnel lab exec 'my suite' b/c1 -- netserver -p 4000 &  # server",
		"windtunnel lab exec 'my suite' b/c2 -- netserver -p 4000 &  # server 2",
		"sleep 1",
		"windtunnel lab exec 'my suite' a/c1 -- netperf -t 'A B' & clients=\"$clients $!\"  # client1",
		"windtunnel lab exec 'my suite' a/c2 -- netperf '$(rm)'  # client1 2",
		"wait $clients",
		"windtunnel lab down 'my suite'",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the lines are\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestWouldShowSaysHowOftenOfARatioThatLiesBeyond(t *testing.T) {
	d := 0.03
	for ratio, want := range map[float64]string{
		1.01: "a difference of 3 % or more would have been detected", 0.98: "a difference of 3 % or more would have been detected",
		1.04: "a difference of 3 % or more would have been detected in 4 of 5 such runs", 0.96: "a difference of 3 % or more would have been detected in 4 of 5 such runs",
	} {
		if got := detectableText(&d, ratio); got != want {
			t.Errorf("with the ratio %v the text is %q, want %q", ratio, got, want)
		}
	}
	zero := 0.0
	if got := detectableText(&zero, 1); got != "any difference would have been detected" || detectableText(nil, 1) != "" {
		t.Errorf("the text for a difference of 0 is %q, for an unknown difference %q", got, detectableText(nil, 1))
	}
}

func TestOnlyTheCPUOfOneNodeIsNotComparableWithThatOfTwo(t *testing.T) {
	for m, want := range map[sample.Metric]bool{sample.SenderThroughput: true, sample.ReceiverThroughput: true, sample.SenderCPU: false, sample.Capacity: false} {
		if got := comparable(m, &suite.Scenario{Placement: suite.Colocated}, &suite.Scenario{Placement: suite.TwoNodes}); got != want {
			t.Errorf("%s: %v, want %v", m, got, want)
		}
	}
}
