package experiment

import (
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestTheRemainingTrialsAreThoseThatAreNotDone(t *testing.T) {
	pair := suite.HostPair{From: "a", To: "b"}
	gate := []sample.Gate{{Name: sample.Steal}}
	for name, c := range map[string]struct {
		e    Experiment
		want int
	}{
		"scenarios": {Experiment{Plan: &suite.Plan{Trials: 3, Scenarios: []suite.Scenario{{ID: "a"}, {ID: "b"}, {ID: "c"}}}, Skipped: map[string]string{"c": "no"},
			History: []sample.Sample{{Scenario: "a"}, {Scenario: "b", Gates: gate}}}, 5},
		"pairs of hosts": {Experiment{Plan: &suite.Plan{Trials: 3, Scenarios: []suite.Scenario{{ID: "s"}}, Matrix: &suite.Matrix{Pairs: []suite.HostPair{pair, {From: "b", To: "a"}}}},
			History: []sample.Sample{{Scenario: suite.PairID("s", pair)}}}, 5},
	} {
		if got := c.e.Remaining(); got != c.want {
			t.Errorf("%s: %d trials remain, want %d", name, got, c.want)
		}
	}
}

// A resumed run does not repeat what yielded figures that count, nor what
// failed in a way that a repeat cannot help. All else it tries again.
func TestAResumedRunRepeatsTrialsThatCanSucceed(t *testing.T) {
	failed := func(k sample.FailureKind) sample.Sample { return sample.Sample{Failure: &sample.Failure{Kind: k}} }
	for name, c := range map[string]struct {
		attempts []sample.Sample
		done     bool
	}{
		"figures":                   {[]sample.Sample{{}}, true},
		"hung":                      {[]sample.Sample{failed(sample.ToolHung)}, false},
		"hung, then figures":        {[]sample.Sample{failed(sample.ToolHung), {}}, true},
		"tool missing":              {[]sample.Sample{failed(sample.ToolMissing)}, true},
		"unsupported":               {[]sample.Sample{failed(sample.Unsupported)}, true},
		"interrupted":               {[]sample.Sample{failed(sample.Interrupted)}, false},
		"no connectivity":           {[]sample.Sample{failed(sample.NoConnectivity)}, false},
		"gated":                     {[]sample.Sample{{Gates: []sample.Gate{{Name: sample.Steal}}}}, false},
		"profiled":                  {[]sample.Sample{{Profiled: true}}, false}, // says nothing of the trial without
		"profiled, and without too": {[]sample.Sample{{Profiled: true}, {}}, true},
	} {
		for i := range c.attempts {
			c.attempts[i].Scenario, c.attempts[i].Attempt = "a", i
		}
		h := newHistory(c.attempts, false)
		if got := h.done[Trial{Scenario: "a"}]; got != c.done {
			t.Errorf("%s: done is %v", name, got)
		}
		last := c.attempts[len(c.attempts)-1]
		if got := h.tried[Trial{"a", 0, last.Profiled}]; got != len(c.attempts) {
			t.Errorf("%s: the next attempt is %d, want %d", name, got, len(c.attempts))
		}
	}
}
