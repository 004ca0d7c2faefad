package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"

	"windtunnel/internal/must"
	"windtunnel/lab/experiment"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestAnAttemptIsOneShortLine(t *testing.T) {
	stream := sample.Metrics{sample.Throughput: 9.61e9, sample.SenderCPU: 54.4, sample.ReceiverCPU: 73}
	foreign := sample.Gate{Name: sample.ForeignCPU, Value: 46.2, Unit: "%", Culprit: "compile", Message: "a long sentence with advice"}
	first := experiment.Progress{Attempt: 1, Attempts: 3, Repeats: true}
	for want, c := range map[string]struct {
		s sample.Sample
		p experiment.Progress
	}{
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %": {sample.Sample{Metrics: stream}, experiment.Progress{Attempt: 1, Attempts: 3}},
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %; rejected (foreign CPU 46.2 %, compile); repeated later (attempt 2 of 3)": {
			sample.Sample{Metrics: stream, Gates: []sample.Gate{foreign}}, first},
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %; rejected (foreign CPU 46.2 %, compile)": {
			sample.Sample{Metrics: stream, Gates: []sample.Gate{foreign}}, experiment.Progress{Attempt: 3, Attempts: 3}},
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %; flagged (foreign CPU 46.2 %, compile; unsteady rate 14.0 %)": {
			sample.Sample{Metrics: stream, Flags: []sample.Gate{foreign, {Name: sample.Unsteady, Value: 14, Unit: "%"}}}, experiment.Progress{}},
		"agent-lost: node b's agent has ended; repeated later (attempt 2 of 3)": {
			sample.Sample{Failure: &sample.Failure{Kind: sample.AgentLost, Message: "node b's agent has ended"}}, first},
		"11,050 transactions/s, p50 76 µs": {
			sample.Sample{Metrics: sample.Metrics{sample.Transactions: 11050, sample.LatencyP50: 76000}}, experiment.Progress{}},
	} {
		must.Equal(t, want, outcome(c.s, c.p))
	}
}

func TestTheTimeLeftDoesNotRiseWhileTrialsTakeAsLongAsExpected(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	c := newCountdown(suite.Forecast{Each: 2 * time.Second, Cells: 1, Repeats: 3}, now)
	last := time.Hour
	for n := 1; n <= 10; n++ {
		startAttempt(c, now, experiment.Trial{Block: n}, experiment.Progress{Number: n, Total: 10, Attempt: 1})
		took := 2 * time.Second
		if n%2 == 0 {
			took = 2300 * time.Millisecond // a trial is now and then slower
		}
		for end := now.Add(took); now.Before(end); now = now.Add(100 * time.Millisecond) {
			left := c.at(now)
			if left > last {
				t.Fatalf("in trial %d the time left rises from %v to %v", n, last, left)
			}
			last = left
		}
		endAttempt(c, experiment.Trial{Block: n}, experiment.Progress{Number: n, Total: 10, Attempt: 1})
	}
	if last > 2*time.Second {
		t.Errorf("%v are left at the end", last)
	}
}

// startAttempt calls the countdown at the start of an attempt, as the live line does.
func startAttempt(c *countdown, now time.Time, t experiment.Trial, p experiment.Progress) {
	c.done.began(t, p)
	c.began(p, now)
}

// endAttempt calls the countdown at the end of an attempt, as the live line does.
func endAttempt(c *countdown, t experiment.Trial, p experiment.Progress) {
	c.done.ended(t, p)
	c.ended(p)
}

func TestTheTimeLeftRisesForAReason(t *testing.T) {
	begun := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	first, second := experiment.Trial{Scenario: "raw/stream"}, experiment.Trial{Scenario: "raw/rr"}
	for name, c := range map[string]struct {
		after   time.Duration
		repeats bool
		next    experiment.Progress
	}{
		"added trials":  {2 * time.Second, false, experiment.Progress{Number: 2, Total: 12, Attempt: 1}},
		"a repeat":      {2 * time.Second, true, experiment.Progress{Number: 2, Total: 10, Attempt: 1}},
		"slower trials": {20 * time.Second, false, experiment.Progress{Number: 2, Total: 10, Attempt: 1}},
	} {
		d := newCountdown(suite.Forecast{Each: 2 * time.Second, Cells: 1, Repeats: 3}, begun)
		startAttempt(d, begun, first, experiment.Progress{Number: 1, Total: 10, Attempt: 1})
		if left := d.at(begun); left < 19*time.Second || left > 21*time.Second {
			t.Errorf("%s: at first %v are left, want about 20s", name, left)
		}
		now := begun.Add(c.after)
		expected := d.at(now)
		endAttempt(d, first, experiment.Progress{Number: 1, Total: 10, Attempt: 1, Repeats: c.repeats})
		startAttempt(d, now, second, c.next)
		if left := d.at(now); left <= expected {
			t.Errorf("%s: %v are left, want more than %v", name, left, expected)
		}
	}
}

// When the first attempt fails, the time left already includes the second attempt.
func TestTheTimeLeftDoesNotRiseTwiceForOneRepeat(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	c := newCountdown(suite.Forecast{Each: 2 * time.Second, Cells: 3, Repeats: 3}, now)
	rejected := experiment.Trial{Scenario: "1"}
	step := func(t experiment.Trial, p experiment.Progress) time.Duration {
		startAttempt(c, now, t, p)
		left := c.at(now)
		now = now.Add(2 * time.Second)
		endAttempt(c, t, p)
		return left
	}
	step(rejected, experiment.Progress{Number: 1, Total: 3, Attempt: 1, Repeats: true})
	before := step(experiment.Trial{Scenario: "2"}, experiment.Progress{Number: 2, Total: 3, Attempt: 1})
	before = min(before, step(experiment.Trial{Scenario: "3"}, experiment.Progress{Number: 3, Total: 3, Attempt: 1}))
	if left := step(rejected, experiment.Progress{Number: 1, Total: 3, Attempt: 2}); left >= before {
		t.Errorf("the second attempt begins with %v left, want less than the %v of the trial before it", left, before)
	}
}

func TestALogHasALineForEachBlockAndEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		v := newDisplay(&suite.Plan{Trials: 2}, &log, false)
		attempt := func(block int, scenario string, took time.Duration, repeats bool) {
			trial := experiment.Trial{Scenario: scenario, Block: block}
			p := experiment.Progress{Number: v.done.begun + 1, Total: 8, Attempt: 1, Attempts: 3, Repeats: repeats}
			v.Began(trial, p)
			time.Sleep(took)
			v.Ended(sample.Sample{Scenario: scenario, Block: block}, p)
		}
		for _, scenario := range []string{"a", "b", "c", "d"} {
			attempt(0, scenario, 2*time.Second, scenario == "b")
		}
		attempt(1, "a", 2*time.Second, false)
		attempt(1, "b", 9*time.Second, false)
		attempt(1, "c", time.Second, false)
		v.Close()
		var got []string
		for line := range strings.Lines(log.String()) {
			got = append(got, strings.Join(strings.Fields(line)[1:], " "))
		}
		want := []string{"1/8 a trial 1 0 bit/s", "3/8, 1 to repeat d trial 1 0 bit/s", "6/8 b trial 2 0 bit/s", "7/8 c trial 2 0 bit/s"}
		must.Equal(t, want, got)
	})
}

// If each attempt is rejected, a trial takes several attempts: 10 of 24 trials were attempted, and
// the remaining 14 first attempts and all repeats are left.
func TestTheTimeLeftIncludesTheRepeatsToExpect(t *testing.T) {
	for repeats, most := range map[int]time.Duration{100: 2 * 72 * time.Second, 14: 2 * 28 * time.Second} {
		now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
		c := newCountdown(suite.Forecast{Each: 2 * time.Second, Cells: 8, Repeats: repeats}, now)
		for n := 1; n <= 10; n++ {
			p := experiment.Progress{Number: n, Total: 24, Attempt: 1, Attempts: 3, Repeats: true}
			startAttempt(c, now, experiment.Trial{Scenario: fmt.Sprint(n)}, p)
			now = now.Add(2 * time.Second)
			endAttempt(c, experiment.Trial{Scenario: fmt.Sprint(n)}, p)
		}
		startAttempt(c, now, experiment.Trial{Scenario: "11"}, experiment.Progress{Number: 11, Total: 24, Attempt: 1, Attempts: 3})
		if left := c.at(now); left <= 2*24*time.Second || left > most {
			t.Errorf("after 10 rejected attempts and with %d repeats at most, %v are left, want more than 48s and at most %v", repeats, left, most)
		}
	}
}

func TestTheCountOfFinishedTrialsNeverFalls(t *testing.T) {
	var p progressCount
	one, two := experiment.Trial{Scenario: "1"}, experiment.Trial{Scenario: "2"}
	next := experiment.Trial{Scenario: "1", Block: 1}
	for i, step := range []struct {
		trial   experiment.Trial
		p       experiment.Progress
		reached int
	}{
		{one, experiment.Progress{Number: 1, Total: 4, Attempt: 1, Repeats: true}, 0},
		{two, experiment.Progress{Number: 2, Total: 4, Attempt: 1}, 1},
		{one, experiment.Progress{Number: 1, Total: 4, Attempt: 2}, 2},
		{next, experiment.Progress{Number: 3, Total: 4, Attempt: 1, Repeats: true}, 2},
		// A run that adjusts its figures drops the repeats of earlier blocks.
		{experiment.Trial{Scenario: "1", Block: 2}, experiment.Progress{Number: 4, Total: 4, Attempt: 1}, 4},
	} {
		p.began(step.trial, step.p)
		p.ended(step.trial, step.p)
		if p.finishedTrials() != step.reached {
			t.Errorf("after step %d: %d trials are finished, want %d", i, p.finishedTrials(), step.reached)
		}
	}
}

func TestTheLiveLineHasTheCurrentStepAndBothCPUs(t *testing.T) {
	m := &liveModel{left: newCountdown(suite.Forecast{Each: 2 * time.Second, Cells: 1, Repeats: 3}, time.Now())}
	shows := func(want string) {
		t.Helper()
		if got := ansi.Strip(m.line()); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	m.Update(beganMsg{experiment.Trial{Scenario: "raw/stream", Block: 2}, experiment.Progress{Number: 3, Total: 10, Attempt: 2, Attempts: 3}})
	shows("raw/stream trial 3 (attempt 2 of 3)  setting up  2 of 10 finished, about ")
	m.Update(upMsg{})
	shows("  measuring  ")
	m.Update(sample.Point{Bits: 9.61e9, SenderCPU: 54.4, ReceiverCPU: 73})
	shows("  9.61 Gbit/s, sender CPU 54 %, receiver 73 %  ")
	m.Update(sample.Point{Bits: 9.61e9}) // no CPU use: the nodes are not pinned
	shows("  9.61 Gbit/s  ")
	m.Update(endedMsg{experiment.Trial{Scenario: "raw/stream", Block: 2}, experiment.Progress{Number: 3, Total: 10, Attempt: 2, Attempts: 3}})
	shows("  3 of 10 finished, about ")
	next := experiment.Trial{Scenario: "raw/rr", Block: 2}
	m.Update(beganMsg{next, experiment.Progress{Number: 4, Total: 10, Attempt: 1, Attempts: 3}})
	m.Update(endedMsg{next, experiment.Progress{Number: 4, Total: 10, Attempt: 1, Attempts: 3, Repeats: true}})
	shows("  3 of 10 finished, 1 to repeat, about ")
	m.Update(beganMsg{next, experiment.Progress{Number: 4, Total: 10, Attempt: 2, Attempts: 3}})
	m.Update(endedMsg{next, experiment.Progress{Number: 4, Total: 10, Attempt: 2, Attempts: 3}})
	shows("  4 of 10 finished, about ")
	m.pursues = true
	shows("at least ")
	m.Update(beganMsg{experiment.Trial{Scenario: "raw/stream", Block: 3}, experiment.Progress{Number: 5, Total: 10, Attempt: 1}})
	shows("  setting up  ")
}
