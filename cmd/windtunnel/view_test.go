package main

import (
	"strings"
	"testing"
	"time"

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
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %; rejected (foreign CPU 46.2 %, compile); retry 2 of 3": {
			sample.Sample{Metrics: stream, Gates: []sample.Gate{foreign}}, first},
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %; rejected (foreign CPU 46.2 %, compile)": {
			sample.Sample{Metrics: stream, Gates: []sample.Gate{foreign}}, experiment.Progress{Attempt: 3, Attempts: 3}},
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %; flagged (foreign CPU 46.2 %, compile; unsteady rate 14.0 %)": {
			sample.Sample{Metrics: stream, Flags: []sample.Gate{foreign, {Name: sample.Unsteady, Value: 14, Unit: "%"}}}, experiment.Progress{}},
		"agent-lost: node b's agent has ended; retry 2 of 3": {
			sample.Sample{Failure: &sample.Failure{Kind: sample.AgentLost, Message: "node b's agent has ended"}}, first},
		"11,050 transactions/s, p50 76 µs": {
			sample.Sample{Metrics: sample.Metrics{sample.Transactions: 11050, sample.LatencyP50: 76000}}, experiment.Progress{}},
	} {
		if got := outcome(c.s, c.p); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// tenTrials is a plan of one scenario whose trials take about 2 s.
func tenTrials() *suite.Plan {
	return &suite.Plan{Trials: 10, Scenarios: []suite.Scenario{{ID: "raw/stream", Timing: suite.Timing{Duration: 1600 * time.Millisecond}}}}
}

func TestTheTimeLeftDoesNotClimbWhileTrialsTakeAsLongAsExpected(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	c := newCountdown(tenTrials(), now)
	last := time.Hour
	for n := 1; n <= 10; n++ {
		c.began(now, experiment.Progress{Number: n, Total: 10, Attempt: 1})
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
	}
	if last > 2*time.Second {
		t.Errorf("%v are left at the end", last)
	}
}

func TestTheTimeLeftRisesForAReason(t *testing.T) {
	begun := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		after    time.Duration
		progress experiment.Progress
	}{
		"added trials":  {2 * time.Second, experiment.Progress{Number: 2, Total: 12, Attempt: 1}},
		"a repeat":      {2 * time.Second, experiment.Progress{Number: 1, Total: 10, Attempt: 2}},
		"slower trials": {20 * time.Second, experiment.Progress{Number: 2, Total: 10, Attempt: 1}},
	} {
		d := newCountdown(tenTrials(), begun)
		d.began(begun, experiment.Progress{Number: 1, Total: 10, Attempt: 1})
		if left := d.at(begun); left < 19*time.Second || left > 21*time.Second {
			t.Errorf("%s: at first %v are left, want about 20s", name, left)
		}
		now := begun.Add(c.after)
		expected := d.at(now)
		d.began(now, c.progress)
		if left := d.at(now); left <= expected {
			t.Errorf("%s: %v are left, want more than %v", name, left, expected)
		}
	}
}

func TestTheLiveLineSaysWhatHappensAndNamesBothCPUs(t *testing.T) {
	m := &liveModel{left: newCountdown(tenTrials(), time.Now())}
	shows := func(want string) {
		t.Helper()
		if got := m.View(); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	m.Update(beganMsg{experiment.Trial{Scenario: "raw/stream", Block: 2}, experiment.Progress{Number: 3, Total: 10, Attempt: 2, Attempts: 3}})
	shows("raw/stream trial 3 (attempt 2 of 3)  setting up  3 of 10, about ")
	m.Update(upMsg{})
	shows("  measuring  ")
	m.Update(sample.Point{Bits: 9.61e9, SenderCPU: 54.4, ReceiverCPU: 73})
	shows("  9.61 Gbit/s, sender CPU 54 %, receiver 73 %  ")
	m.pursues = true
	shows("at least ")
	m.Update(beganMsg{experiment.Trial{Scenario: "raw/stream", Block: 3}, experiment.Progress{Number: 4, Total: 10, Attempt: 1}})
	shows("  setting up  ")
}
