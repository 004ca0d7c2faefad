package suite

import (
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
)

const shortened = small + `trials: 12
precision: 2%
max_trials: 50
timing: {warmup: 1s, duration: 15s}
comparisons: [{baseline: raw, subjects: bridge}]
short:
  trials: 7
  timing: {duration: 800ms, cooldown: 0}
  scenarios: [bridge, "raw/s*"]
`

func TestTheShortFormChangesTrialsTimingAndScenarios(t *testing.T) {
	p := mustExpand(t, shortened, ExpandOptions{Short: true})
	if got := ids(p); got != "raw/stream bridge/stream bridge/rr" {
		t.Errorf("scenarios %q", got)
	}
	if p.Trials != 7 || p.Stop != (Stop{}) || !p.Short {
		t.Errorf("%d trials, stop %+v, short %v; want 7 trials and no more", p.Trials, p.Stop, p.Short)
	}
	if got := pairs(p); got != "bridge/stream<raw/stream" {
		t.Errorf("comparisons %q", got)
	}
	for _, s := range p.Scenarios {
		if s.Timing != (Timing{time.Second, 800 * time.Millisecond, 0}) || s.Tool != "builtin" {
			t.Errorf("%s: %+v by %s", s.ID, s.Timing, s.Tool)
		}
	}
	if text := Render(p); !strings.Contains(text, "small (short form): small") || !strings.Contains(text, "3 scenarios × 7 trials") {
		t.Errorf("the plan does not say that it is short:\n%s", text)
	}
	whole := mustExpand(t, shortened, ExpandOptions{})
	if whole.Short || whole.Trials != 12 || whole.Stop.MaxTrials != 50 || len(whole.Scenarios) != 4 || whole.Scenarios[0].Timing.Duration != 15*time.Second {
		t.Errorf("the short form has changed the suite itself: %+v", whole)
	}
}

func TestOptionsChangeTheShortFormAsTheyChangeTheSuite(t *testing.T) {
	p := mustExpand(t, shortened+"  tool: iperf3\n", ExpandOptions{Short: true})
	if p.Scenarios[0].Tool != "iperf3" {
		t.Errorf("tool %s, want the short form's", p.Scenarios[0].Tool)
	}
	p = mustExpand(t, shortened+"  tool: iperf3\n", ExpandOptions{
		Short: true, Tool: "netperf", Trials: 9, Duration: 3 * time.Second, Scenarios: []string{"bridge"}, Precision: 0.05,
	})
	if got := ids(p); got != "bridge/stream bridge/rr" || p.Trials != 9 || p.Scenarios[0].Tool != "netperf" || p.Scenarios[0].Timing.Duration != 3*time.Second {
		t.Errorf("%s, %d trials, %+v", got, p.Trials, p.Scenarios[0])
	}
	if p.Stop != (Stop{0.05, 40, 30 * time.Minute}) {
		t.Errorf("stop %+v", p.Stop)
	}
	_, err := mustParse(t, shortened).Expand(ExpandOptions{Short: true, Scenarios: []string{"raw/rr"}})
	must.Fail(t, err, `there is no scenario "raw/rr" in the short form`)
}

func TestASuiteWithoutShortFormRefusesIt(t *testing.T) {
	_, err := mustParse(t, small).Expand(ExpandOptions{Short: true})
	must.Fail(t, err, `suite small: it has no short form (the complete suite takes about 1m14s); add a block "short:"`)
}

func TestTheToolOfTheShortFormMustExist(t *testing.T) {
	_, err := mustParse(t, shortened+"  tool: ipref3\n").Expand(ExpandOptions{Vocabulary: Vocabulary{Tools: []string{"builtin", "iperf3"}}})
	must.Fail(t, err, `there is no tool "ipref3"`, `did you mean "iperf3"?`)
}
