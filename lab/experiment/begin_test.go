package experiment

import (
	"strings"
	"testing"
	"time"

	"windtunnel/lab/suite"
)

func TestTheWindowIsCountedFromTheLastPairsBeginning(t *testing.T) {
	at := time.Now()
	moments := func(ms ...int) (list []time.Time) {
		for _, m := range ms {
			list = append(list, at.Add(time.Duration(m)*time.Millisecond))
		}
		return list
	}
	const cooldown = 50 * time.Millisecond
	for _, c := range []struct {
		began []time.Time
		last  int
		fits  bool
	}{
		{moments(7), 7, true},
		{moments(0, 40, 10), 40, true},
		{moments(70, 0), 70, true}, // the window ends 20 ms before the measured part does
		{moments(0, 71), 71, false},
	} {
		last, err := lastOf(c.began, cooldown)
		if !last.Equal(at.Add(time.Duration(c.last)*time.Millisecond)) || (err == nil) != c.fits {
			t.Errorf("%v: %v, %v", c.began, last.Sub(at), err)
		}
		if err != nil && !strings.Contains(err.Error(), "2 pairs began 71ms apart, and the cool-down is 50ms") {
			t.Errorf("%v", err)
		}
	}
}

// Clients of many pairs start together: each one's command and output is kept in
// the order of the pairs.
func TestManyPairsBeginTogether(t *testing.T) {
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
