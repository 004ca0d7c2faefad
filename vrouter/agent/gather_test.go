package agent

import (
	"errors"
	"testing"
	"time"

	"windtunnel/vrouter/fleet"
)

// gatherer is an agent without store changes. It counts the calls of afterFollow.
func gatherer() (a *agent, answered *int) {
	a = &agent{shared: &shared{watcher: fleet.New(nil, fleet.Options{}).Watcher()}, followTook: time.Millisecond}
	return a, new(int)
}

func (a *agent) waits(answered *int) {
	a.waiting = append(a.waiting, func(error) { *answered++ })
	a.followSoon()
}

func TestWhoComesAloneIsNotKeptWaiting(t *testing.T) {
	a, answered := gatherer()
	a.waits(answered)
	if *answered != 1 || a.gathered != nil {
		t.Errorf("%d answers, a timer: %v", *answered, a.gathered != nil)
	}
}

func TestTheNodeFollowsTheStoreOnceForAllThatAreOnTheirWay(t *testing.T) {
	a, answered := gatherer()
	a.followTook = time.Hour
	first, second := a.changePending(), a.changePending()
	first()
	first() // counts once
	a.waits(answered)
	if *answered != 0 || a.gathered == nil {
		t.Fatalf("another is on its way: %d answers, a timer: %v", *answered, a.gathered != nil)
	}
	second()
	a.waits(answered)
	if *answered != 2 || a.gathered != nil || len(a.waiting) > 0 {
		t.Errorf("%d answers of 2, a timer: %v, %d wait", *answered, a.gathered != nil, len(a.waiting))
	}
}

func TestWhoNeverComesIsWaitedForAShareOfThePass(t *testing.T) {
	a, answered := gatherer()
	a.changePending()
	a.unfit = errors.New("no room")
	a.waiting = append(a.waiting, func(unfit error) {
		if unfit != a.unfit {
			t.Errorf("told %v", unfit)
		}
	})
	a.waits(answered)
	select {
	case <-a.gathered:
	case <-time.After(10 * time.Second):
		t.Fatal("the timer never fires")
	}
	a.catchUp()
	if *answered != 1 {
		t.Errorf("%d answers", *answered)
	}
}
