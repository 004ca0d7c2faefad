package experiment

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/testbedtest"
)

func TestTheWindowBeginsAfterTheLastPairHasStarted(t *testing.T) {
	at := time.Now()
	moments := func(ms ...int) (list []time.Time) {
		for _, m := range ms {
			list = append(list, at.Add(time.Duration(m)*time.Millisecond))
		}
		return list
	}
	const after = 70 * time.Millisecond
	for _, c := range []struct {
		began []time.Time
		last  int
		fits  bool
	}{
		{moments(7), 7, true},
		{moments(0, 40, 10), 40, true},
		{moments(70, 0), 70, true},
		{moments(0, 71), 71, false},
	} {
		last, err := lastOf(c.began, after)
		if !last.Equal(at.Add(time.Duration(c.last)*time.Millisecond)) || (err == nil) != c.fits {
			t.Errorf("the last of %v begins after %v (%v), want after %d ms, and an error unless it fits: %t", c.began, last.Sub(at), err, c.last, c.fits)
		}
		if err != nil && !strings.Contains(err.Error(), "2 pairs began 71ms apart, but each sends only for 70ms after the meters' window") {
			t.Errorf("%v", err)
		}
	}
}

// A program starts slowly on an emulated CPU. The host's client waits for the VM's, so that
// both send in the whole window. The engine still meters it, however slow.
func TestTheClientOfTheHostStartsAfterTheSlowClientsOfVMs(t *testing.T) {
	const slow = 12 * time.Second
	vm := newContainer(1, 1).V4.Addr().String()
	var mu sync.Mutex
	started := map[string]time.Time{}
	x := &testbedtest.Executor{
		Program: func(argv []string) testbedtest.Program {
			p := testbedtest.Generator(argv)
			if slices.ContainsFunc(argv, func(a string) bool { return strings.HasPrefix(a, vm) }) {
				p.Wakes = slow
			}
			return p
		},
		Hook: func(o testbedtest.Operation) error {
			if args, is := o.Args.(agent.StartArgs); is && o.Node == "a" {
				mu.Lock()
				defer mu.Unlock()
				started[args.Endpoint] = time.Now()
			}
			return nil
		},
	}
	samples := runFake(t, x, func(e *Experiment) {
		sc := &e.Plan.Scenarios[0]
		sc.System, sc.Pairs, sc.Endpoint = "bridge", 2, suite.Endpoint{Kind: suite.VM, CPUs: 1, HostVNIC: true}
		sc.Timing.Duration = time.Minute
		e.Attempts = 1
	})
	if index(x.Operations(), "a.MeterRead") < 0 {
		t.Fatalf("nothing was metered: %v", samples[0].Failure)
	}
	if after := started[""].Sub(started["c1"]); len(started) != 2 || after < slow {
		t.Errorf("the client of the host started %v after that of the VM, want %v or more", after, slow)
	}
}

// Clients of many pairs start together: each one's command and output is kept in
// the order of the pairs.
func TestManyPairsStartTogether(t *testing.T) {
	const pairs = 4
	s := runOne(t, scenario("bridge", func(sc *suite.Scenario) {
		sc.Pairs, sc.Timing.Cooldown = pairs, 2*time.Second
	}))
	if !s.OK() {
		t.Fatal(s.Failure)
	}
	var on []string
	for _, c := range s.Commands {
		if strings.HasPrefix(c.Role, "client") {
			on = append(on, c.On)
		}
	}
	if len(on) != pairs || on[0] != "a/c1" || on[pairs-1] != "a/c4" || len(s.Outputs) != 2*pairs {
		t.Errorf("clients on %v, %d outputs", on, len(s.Outputs))
	}
}
