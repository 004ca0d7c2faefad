package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// rehearsal is an experiment whose trials are made by a function of theirs.
func rehearsal(n *notebook, trials int, try func(t Trial, attempt int, s *sample.Sample) error, ids ...string) *Experiment {
	plan := &suite.Plan{Suite: "test", Nodes: 2, Trials: trials}
	for _, id := range ids {
		plan.Scenarios = append(plan.Scenarios, suite.Scenario{ID: id})
	}
	return &Experiment{
		Plan: plan, Seed: 1, Attempts: 3, Recorder: n, Observer: n,
		try: func(_ context.Context, _ *suite.Scenario, t Trial, _ bool, s *sample.Sample) error {
			return try(t, s.Attempt, s)
		},
	}
}

func gated(s *sample.Sample) error {
	s.Gates = []sample.Gate{{Name: sample.ForeignCPU}}
	return nil
}

// counts tells how many samples a scenario has, and how many of them count.
func (n *notebook) counts(id string) (all, valid int) {
	for _, s := range n.samples {
		if s.Scenario == id {
			all++
			if s.Counts() {
				valid++
			}
		}
	}
	return all, valid
}

// The machine stays in one state for seconds. A repeat after the block's other
// trials has a better chance than an immediate one.
func TestATrialThatFailsAConditionIsRepeatedAtTheEndOfItsBlock(t *testing.T) {
	n := &notebook{}
	e := rehearsal(n, 4, func(t Trial, attempt int, s *sample.Sample) error {
		if t.Block == 1 && attempt < 2 {
			return gated(s)
		}
		return nil
	}, "a", "b")
	must.Succeed(t, e.Run(context.Background()))
	for _, id := range []string{"a", "b"} {
		if all, valid := n.counts(id); all != 6 || valid != 4 {
			t.Errorf("%s: %d samples, %d count; want 6 and 4", id, all, valid)
		}
	}
	for i, s := range n.samples {
		if want := []struct{ block, attempt int }{{0, 0}, {0, 0}, {1, 0}, {1, 0}, {1, 1}, {1, 1}, {1, 2}, {1, 2}, {2, 0}, {2, 0}, {3, 0}, {3, 0}}[i]; s.Block != want.block || s.Attempt != want.attempt {
			t.Errorf("sample %d is attempt %d in block %d; want attempt %d in block %d", i, s.Attempt, s.Block, want.attempt, want.block)
		}
	}
}

// The last attempt may run at any CPU distance, also where it is the only one
// because the scenario never passes.
func TestTheLastAttemptIsMarked(t *testing.T) {
	e := rehearsal(&notebook{}, 4, nil, "a")
	e.History = []sample.Sample{{Scenario: "b"}} // counts, so that the run goes on
	var lasts []bool
	e.try = func(_ context.Context, _ *suite.Scenario, _ Trial, last bool, s *sample.Sample) error {
		lasts = append(lasts, last)
		return gated(s)
	}
	must.Succeed(t, e.Run(context.Background()))
	once := []bool{false, false, true}
	if want := append(slices.Repeat(once, hopelessAfter), true); len(lasts) < len(want) || !slices.Equal(lasts[:len(want)], want) {
		t.Errorf("last is %v, want it to begin with %v", lasts, want)
	}
}

// A trial with a flag counts: no attempt follows, and no block makes up for it.
func TestATrialWithAFlagIsNotRepeated(t *testing.T) {
	n := &notebook{}
	e := rehearsal(n, 4, func(_ Trial, _ int, s *sample.Sample) error {
		s.Flags = []sample.Gate{{Name: sample.Unsteady}}
		return nil
	}, "a")
	must.Succeed(t, e.Run(context.Background()))
	if all, valid := n.counts("a"); all != 4 || valid != 4 {
		t.Errorf("%d samples, %d count; want 4 and 4", all, valid)
	}
}

// For a lost trial, an additional block runs at the end. It runs the trial's scenario and the
// scenarios that are compared with it. There are at most half as many additional blocks as planned
// blocks.
func TestABlockReplacesALostTrial(t *testing.T) {
	for bad, want := range map[int]int{0: 6, 1: 7, 2: 8, 3: 9, 5: 9} {
		n := &notebook{}
		e := rehearsal(n, 6, func(t Trial, _ int, s *sample.Sample) error {
			if t.Scenario == "b" && t.Block >= 1 && t.Block <= bad {
				return gated(s)
			}
			return nil
		}, "a", "b", "c")
		e.Plan.Comparisons = []suite.Comparison{{Baseline: "a", Subject: "b"}}
		must.Succeed(t, e.Run(context.Background()))
		if _, valid := n.counts("a"); valid != want {
			t.Errorf("%d blocks lost a trial: a was run %d times, want %d", bad, valid, want)
		}
		if _, valid := n.counts("c"); valid != 6 {
			t.Errorf("%d blocks lost a trial: c, which is not compared with it, was run %d times, want 6", bad, valid)
		}
	}
}

// Comparisons are paired within blocks, so each block that lost a trial needs a replacement,
// whichever of the compared scenarios lost it.
func TestEachIncompletePairIsReplaced(t *testing.T) {
	n := &notebook{}
	e := rehearsal(n, 6, func(t Trial, _ int, s *sample.Sample) error {
		if t == (Trial{Scenario: "a", Block: 1}) || t == (Trial{Scenario: "b", Block: 2}) {
			return gated(s)
		}
		return nil
	}, "a", "b")
	e.Plan.Comparisons = []suite.Comparison{{Baseline: "a", Subject: "b"}}
	must.Succeed(t, e.Run(context.Background()))
	valid := map[int]int{} // trials that count, by block
	for _, s := range n.samples {
		if len(s.Gates) == 0 {
			valid[s.Block]++
		}
	}
	pairs := 0
	for _, trials := range valid {
		if trials == 2 {
			pairs++
		}
	}
	if pairs != 6 || len(valid) != 8 {
		t.Errorf("%d pairs in %d blocks, want 6 in 8", pairs, len(valid))
	}
}

// A run that was interrupted in a block of replacements goes on with the scenarios of that block.
func TestABlockOfReplacementsIsResumed(t *testing.T) {
	lose := func(t Trial, _ int, s *sample.Sample) error {
		if t == (Trial{Scenario: "b", Block: 2}) {
			return gated(s)
		}
		return nil
	}
	n := &notebook{}
	e := rehearsal(n, 6, lose, "a", "b", "c")
	e.Plan.Comparisons = []suite.Comparison{{Baseline: "a", Subject: "b"}}
	must.Succeed(t, e.Run(context.Background()))
	last := len(n.samples) - 1
	resumed := &notebook{}
	e = rehearsal(resumed, 6, lose, "a", "b", "c")
	e.Plan.Comparisons = []suite.Comparison{{Baseline: "a", Subject: "b"}}
	e.History = n.samples[:last]
	must.Succeed(t, e.Run(context.Background()))
	var again []string
	for _, s := range resumed.samples {
		if s.Block == 6 {
			again = append(again, s.Scenario)
		}
	}
	if !slices.Equal(again, []string{n.samples[last].Scenario}) {
		t.Errorf("after the interruption block 6 ran %v, want only %s", again, n.samples[last].Scenario)
	}
}

// A trial whose last attempt ran at another CPU distance is lost for the run's
// comparisons.
func TestABlockWithATrialAtAnotherDistanceIsReplaced(t *testing.T) {
	for choice, want := range map[condition.Choice]int{condition.Auto: 7, condition.Near: 7, condition.Any: 6} {
		n := &notebook{}
		e := rehearsal(n, 6, func(t Trial, _ int, s *sample.Sample) error {
			distance := 100.0
			if t.Scenario == "b" && t.Block == 2 {
				distance = 400
			}
			s.Metrics = sample.Metrics{sample.CPUDistance: distance}
			for range 10 {
				s.Series = append(s.Series, sample.Point{CPUDistance: distance})
			}
			return nil
		}, "a", "b")
		e.Plan.Comparisons = []suite.Comparison{{Baseline: "a", Subject: "b"}}
		e.Distance = choice
		must.Succeed(t, e.Run(context.Background()))
		if all, _ := n.counts("a"); all != want {
			t.Errorf("CPU distance %s: %d blocks were run, want %d", choice, all, want)
		}
	}
}

// A block of which nothing counts ends the run: the machine is busy.
func TestARunEndsAfterAFirstBlockThatDoesNotCount(t *testing.T) {
	n := &notebook{}
	e := rehearsal(n, 6, func(_ Trial, _ int, s *sample.Sample) error { return gated(s) }, "a", "b")
	if err := e.Run(context.Background()); !errors.Is(err, ErrNoneCounts) {
		t.Errorf("Run returned %v", err)
	}
	if len(n.samples) != 2*3 {
		t.Errorf("%d attempts, want 3 of each scenario in one block", len(n.samples))
	}
	e = rehearsal(&notebook{}, 6, func(_ Trial, _ int, s *sample.Sample) error { return gated(s) }, "a", "b")
	e.History = []sample.Sample{{Scenario: "a"}}
	if err := e.Run(context.Background()); err != nil {
		t.Errorf("with an earlier trial that counts Run returned %v", err)
	}
	e = rehearsal(&notebook{}, 1, func(_ Trial, _ int, s *sample.Sample) error { return failed(sample.NoResult, "nothing") }, "a")
	if err := e.Run(context.Background()); err != nil {
		t.Errorf("after the only block Run returned %v", err)
	}
}

// A test's FailNow in a callback ends the attempt's goroutine. The run must not wait for it.
func TestAnAttemptWhoseGoroutineExitsIsAFailure(t *testing.T) {
	n := &notebook{}
	e := rehearsal(n, 1, func(Trial, int, *sample.Sample) error {
		runtime.Goexit()
		return nil
	}, "a")
	e.Attempts = 1
	must.Succeed(t, e.Run(context.Background()))
	if len(n.samples) != 1 || n.samples[0].Failure == nil {
		t.Errorf("the samples are %+v, want one with a failure", n.samples)
	}
}

func TestTheObserverGetsTheNumberOfEachAttempt(t *testing.T) {
	n := &notebook{}
	e := rehearsal(n, 1, func(t Trial, attempt int, s *sample.Sample) error {
		if attempt < 2 {
			return gated(s)
		}
		return nil
	}, "a")
	must.Succeed(t, e.Run(context.Background()))
	want := []Progress{{1, 1, 1, 3, true}, {1, 1, 2, 3, true}, {1, 1, 3, 3, false}}
	must.Equal(t, want, n.ended)
}

// A scenario for which the machine is never fit is tried, and not for ever.
func TestAScenarioThatNeverPassesIsNotRepeatedForEver(t *testing.T) {
	n := &notebook{}
	e := rehearsal(n, 10, func(t Trial, _ int, s *sample.Sample) error {
		if t.Scenario == "b" {
			return gated(s)
		}
		return nil
	}, "a", "b")
	must.Succeed(t, e.Run(context.Background()))
	if all, _ := n.counts("a"); all != 10 {
		t.Errorf("%d blocks were run, want 10", all)
	}
	if all, _ := n.counts("b"); all != 3*3+7 {
		t.Errorf("%d attempts at what never passes, want 3 in each of %d blocks and 1 in the others", all, hopelessAfter)
	}
}

func TestBlocksRunUntilThePrecisionOrABoundIsReached(t *testing.T) {
	for name, c := range map[string]struct {
		satisfied int // trials that suffice
		slow      time.Duration
		maxTime   time.Duration
		want      int
	}{
		"reached at once":  {1, 0, 0, 4},
		"reached later":    {7, 0, 0, 7},
		"never reached":    {100, 0, 0, 12},
		"out of time":      {100, 5 * time.Millisecond, 60 * time.Millisecond, -1},
		"time is up early": {100, 5 * time.Millisecond, time.Millisecond, 4},
	} {
		n := &notebook{}
		e := rehearsal(n, 4, func(Trial, int, *sample.Sample) error {
			time.Sleep(c.slow)
			return nil
		}, "a")
		e.Plan.Stop = suite.Stop{Precision: 0.02, MaxTrials: 12, MaxTime: c.maxTime}
		asked := 0
		e.Imprecise = func(samples []sample.Sample) bool {
			asked++
			return len(samples) < c.satisfied
		}
		must.Succeed(t, e.Run(context.Background()))
		got, _ := n.counts("a")
		if c.want >= 0 && got != c.want || c.want < 0 && (got < 5 || got > 12) {
			t.Errorf("%s: %d trials, want %d", name, got, c.want)
		}
		if asked == 0 && c.maxTime != time.Millisecond {
			t.Errorf("%s: nobody asked for the precision", name)
		}
	}
}

// Profiles are taken in trials of their own, in the same blocks, in random
// order with the others.
func TestProfiledTrialsAreSeparateTrialsOfTheSameBlocks(t *testing.T) {
	n := &notebook{}
	e := rehearsal(n, 5, func(t Trial, _ int, s *sample.Sample) error {
		if t.Profiled != s.Profiled {
			return fmt.Errorf("trial and sample differ")
		}
		return nil
	}, "a", "b")
	e.Profiling = Profiling{Rate: 499, Blocks: 3}
	must.Succeed(t, e.Run(context.Background()))
	first := 0
	for _, id := range []string{"a", "b"} {
		plain, profiled := 0, 0
		for i, s := range n.samples {
			switch {
			case s.Scenario != id:
			case s.Profiled:
				profiled++
				if i == 0 || n.samples[i-1].Block != s.Block {
					first++
				}
			default:
				plain++
			}
		}
		if plain != 5 || profiled != 3 {
			t.Errorf("%s: %d plain trials and %d profiled, want 5 and 3", id, plain, profiled)
		}
	}
	if first == 3 {
		t.Error("every block begins with a profiled trial")
	}
}

// What an earlier part of a run gave up at a gate is tried again when the run
// is resumed, and a replacement block of before is not run twice.
func TestAResumedRunCountsEarlierLostTrials(t *testing.T) {
	n := &notebook{}
	e := rehearsal(n, 2, func(Trial, int, *sample.Sample) error { return nil }, "a")
	e.History = []sample.Sample{
		{Scenario: "a", Block: 0},
		{Scenario: "a", Block: 1, Gates: []sample.Gate{{Name: sample.Steal}}},
		{Scenario: "a", Block: 2},
	}
	must.Succeed(t, e.Run(context.Background()))
	if len(n.samples) != 1 || n.samples[0].Block != 1 || n.samples[0].Attempt != 1 {
		t.Errorf("samples: %+v", n.samples)
	}
}
