package suite

import (
	"math"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
)

func TestAPrecisionHasBoundsByDefaultAndKeepsThoseOfTheFile(t *testing.T) {
	for lines, want := range map[string]struct {
		trials int
		stop   Stop
	}{
		"":                           {6, Stop{}},
		"trials: 12":                 {12, Stop{}},
		"precision: 2%":              {6, Stop{0.02, 40, 30 * time.Minute}},
		"precision: 0.1 %":           {6, Stop{0.001, 40, 30 * time.Minute}},
		"precision: 50%":             {6, Stop{0.5, 40, 30 * time.Minute}},
		"precision: 2%\ntrials: 10":  {10, Stop{0.02, 40, 30 * time.Minute}},
		"precision: 2%\ntrials: 11":  {11, Stop{0.02, 44, 30 * time.Minute}},
		"precision: 2%\ntrials: 400": {400, Stop{0.02, 1000, 30 * time.Minute}},
		"trials: 10\nprecision: 1.5%\nmax_trials: 10\nmax_time: 20m": {10, Stop{0.015, 10, 20 * time.Minute}},
	} {
		p := mustExpand(t, with(lines), ExpandOptions{})
		if p.Trials != want.trials || p.Stop != want.stop {
			t.Errorf("%q: %d trials, %+v; want %d, %+v", lines, p.Trials, p.Stop, want.trials, want.stop)
		}
	}
}

func TestOptionsOverrideTheStopOfTheFile(t *testing.T) {
	fixed, pursuing := mustParse(t, small), mustParse(t, with("trials: 10\nprecision: 5%\nmax_trials: 20\nmax_time: 5m"))
	for _, c := range []struct {
		suite  *Suite
		opts   ExpandOptions
		trials int
		stop   Stop
	}{
		{fixed, ExpandOptions{Precision: 0.02}, 6, Stop{0.02, 40, 30 * time.Minute}},
		{fixed, ExpandOptions{Precision: 0.02, Trials: 15}, 15, Stop{0.02, 60, 30 * time.Minute}},
		{fixed, ExpandOptions{Precision: 0.02, MaxTrials: 8, MaxTime: time.Minute}, 6, Stop{0.02, 8, time.Minute}},
		{pursuing, ExpandOptions{}, 10, Stop{0.05, 20, 5 * time.Minute}},
		{pursuing, ExpandOptions{Precision: 0.01}, 10, Stop{0.01, 20, 5 * time.Minute}},
		{pursuing, ExpandOptions{Trials: 20}, 20, Stop{0.05, 20, 5 * time.Minute}},
		{pursuing, ExpandOptions{MaxTrials: 10, MaxTime: time.Hour}, 10, Stop{0.05, 10, time.Hour}},
	} {
		p, err := c.suite.Expand(c.opts)
		if err != nil || p.Trials != c.trials || p.Stop != c.stop {
			t.Errorf("%+v gave %+v, %v; want %d trials, %+v", c.opts, p, err, c.trials, c.stop)
		}
	}
}

func TestStopOptionsThatContradictAreRefused(t *testing.T) {
	fixed, pursuing := mustParse(t, small), mustParse(t, with("trials: 10\nprecision: 5%\nmax_trials: 20"))
	for _, c := range []struct {
		suite *Suite
		opts  ExpandOptions
		says  string
	}{
		{fixed, ExpandOptions{Precision: 0.0009}, "suite small: --precision 0.09 % is out of bounds: choose 0.1 % to 50 %"},
		{fixed, ExpandOptions{Precision: 0.51}, "--precision 51 % is out of bounds"},
		{fixed, ExpandOptions{Precision: -0.02}, "--precision -2 % is out of bounds"},
		{fixed, ExpandOptions{Precision: math.NaN()}, "--precision — is out of bounds"},
		{fixed, ExpandOptions{MaxTrials: 20}, "--max-trials and --max-time require --precision: add it, such as --precision 2%"},
		{fixed, ExpandOptions{MaxTime: time.Minute}, "require --precision"},
		{fixed, ExpandOptions{Precision: 0.02, MaxTrials: -1}, "--max-trials -1 is out of bounds: choose 1 to 1000"},
		{fixed, ExpandOptions{Precision: 0.02, MaxTrials: 1001}, "--max-trials 1001 is out of bounds"},
		{fixed, ExpandOptions{Precision: 0.02, MaxTime: time.Millisecond}, "--max-time 1ms is out of bounds: choose 1s to 168h0m0s"},
		{fixed, ExpandOptions{Precision: 0.02, MaxTrials: 5}, "the maximum of 5 trials is below the minimum of 6: set --max-trials to 6 or more, or lower --trials"},
		{pursuing, ExpandOptions{MaxTrials: 9}, "the maximum of 9 trials is below the minimum of 10"},
		{pursuing, ExpandOptions{Trials: 21}, "the maximum of 20 trials is below the minimum of 21"},
	} {
		_, err := c.suite.Expand(c.opts)
		must.Fail(t, err, c.says)
	}
}

func TestTheWorstCaseIncludesRepeatsAndTheTrialsForAPrecision(t *testing.T) {
	// One trial at worst; a block has 4, and as many as 3 repeats.
	const trial = 1400*time.Millisecond + 15*time.Second
	const timing = "timing: {warmup: 300ms, duration: 1s, cooldown: 100ms}\n"
	for lines, worst := range map[string]time.Duration{
		"trials: 1":  7 * trial,
		"trials: 10": 70 * trial,
		"trials: 10\nprecision: 2%\nmax_time: 168h":             280 * trial,
		"trials: 10\nprecision: 2%\nmax_trials: 11":             77 * trial,
		"trials: 6\nprecision: 2%":                              30*time.Minute + 4*trial,
		"trials: 10\nprecision: 2%\nmax_time: 1m":               70 * trial, // the fewest trials take longer
		"trials: 1\nprecision: 2%\nmax_time: 1m\nmax_trials: 3": time.Minute + 4*trial,
	} {
		p := mustExpand(t, with(timing+lines), ExpandOptions{})
		if p.WorstCase() != worst {
			t.Errorf("%q: %v, want %v", lines, p.WorstCase(), worst)
		}
		if p.Estimate() != time.Duration(p.Trials)*4*(1800*time.Millisecond) {
			t.Errorf("%q: estimated at %v", lines, p.Estimate())
		}
	}
	for blocks, want := range map[int]int{0: 0, 1: 1, 2: 1, 3: 2, 10: 5, 11: 6, math.MaxInt: math.MaxInt/2 + 1} {
		if got := (&Plan{}).Replacements(blocks); got != want {
			t.Errorf("%d blocks have %d replacements, want %d", blocks, got, want)
		}
	}
	for scenarios, want := range map[int]int{1: 30, 6: 30, 7: 40, 8: 40, 100: 500} {
		if got := (&Plan{Scenarios: make([]Scenario, scenarios)}).Repeats(10); got != want {
			t.Errorf("10 blocks of %d scenarios may have %d repeats, want %d", scenarios, got, want)
		}
	}
}

func TestRenderBeginsWithTheLongestTimeOfAPrecision(t *testing.T) {
	got := Render(mustExpand(t, with("precision: 2%\nmax_time: 20m"), ExpandOptions{}))
	want := `about 1m14s with the fewest trials, at worst 21m11s (if the precision is not reached, every set-up takes 15 s and trials are repeated)
small: small
4 scenarios × 6 to 40 trials on 2 nodes
until figures are known to ± 2 %; beyond the fewest trials no block begins after 20m
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("rendered\n%s\nwant first\n%s", got, want)
	}
}
