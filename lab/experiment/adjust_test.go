package experiment

import (
	"context"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
)

// stolen is a trial in which the host took the CPUs away.
func stolen(_ Trial, _ int, s *sample.Sample) error {
	s.Gates = []sample.Gate{{Name: sample.Steal}}
	return nil
}

// After six attempts that failed for steal the run adjusts, and repeats nothing
// more for it.
func TestARunOnAMachineWithoutAStateBeginsToAdjust(t *testing.T) {
	n, asked := &notebook{}, 0
	e := rehearsal(n, 4, stolen, "a", "b")
	e.Adjusting = func() error { asked++; return nil }
	must.Succeed(t, e.Run(context.Background()))
	// 3 attempts at each of the first two trials, then one at each of the other 6.
	if asked != 1 || len(n.samples) != 12 {
		t.Errorf("Adjusting was called %d times over %d samples, want 1 and 12", asked, len(n.samples))
	}
	if e.Adjust = true; len(n.samples) == 12 {
		again := &notebook{}
		e.Recorder, e.Observer = again, again
		if err := e.Run(context.Background()); err != nil || len(again.samples) != 8 || asked != 1 {
			t.Errorf("a run that adjusts from the start made %d samples, want 8: %v", len(again.samples), err)
		}
	}
}

// The first block of a plan with one scenario has three attempts at most.
func TestARunOfOneScenarioBeginsToAdjust(t *testing.T) {
	n, asked := &notebook{}, 0
	e := rehearsal(n, 4, stolen, "a")
	e.Adjusting = func() error { asked++; return nil }
	if err := e.Run(context.Background()); err != nil || asked != 1 || len(n.samples) != 6 {
		t.Errorf("Run returned %v after %d samples, Adjusting was called %d times; want 3 attempts, then one at each of 3 trials", err, len(n.samples), asked)
	}
}

// A run can begin to adjust its figures within a block. Trials of that block that
// wait for a repeat then count without one.
func TestTrialsThatCountAdjustedAreNotRepeated(t *testing.T) {
	n := &notebook{}
	e := rehearsal(n, 1, stolen, "a", "b", "c", "d", "e", "f", "g", "h")
	e.Adjusting = func() error { return nil }
	if err := e.Run(context.Background()); err != nil || len(n.samples) != 8 {
		t.Errorf("%d samples, %v; want one of each scenario", len(n.samples), err)
	}
}

// After 40 good trials every attempt fails. The run begins to adjust after newestFailed of them.
func TestTheNewestTrialsMakeARunAdjust(t *testing.T) {
	n, asked := &notebook{}, 0
	e := rehearsal(n, 30, func(trial Trial, _ int, s *sample.Sample) error {
		if trial.Block < 20 {
			return nil
		}
		return stolen(trial, 0, s)
	}, "a", "b")
	e.Adjusting = func() error {
		if asked++; len(n.samples) != 40+newestFailed {
			t.Errorf("the run adjusts after %d attempts, want %d", len(n.samples), 40+newestFailed)
		}
		return nil
	}
	if err := e.Run(context.Background()); err != nil || asked != 1 {
		t.Errorf("Run returned %v; Adjusting was called %d times", err, asked)
	}
}

func TestOtherConditionsAndChosenDistancesDoNotMakeARunAdjust(t *testing.T) {
	never := func() error { t.Error("Adjusting was called"); return nil }
	busy := rehearsal(&notebook{}, 4, func(_ Trial, _ int, s *sample.Sample) error { return gated(s) }, "a", "b")
	busy.Adjusting = never
	_ = busy.Run(context.Background()) // none counts, which it says
	near := rehearsal(&notebook{}, 4, stolen, "a", "b")
	near.Adjusting, near.Distance = never, condition.Near
	_ = near.Run(context.Background())
}
