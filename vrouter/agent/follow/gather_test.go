package follow

import (
	"errors"
	"testing"
	"time"

	"windtunnel/vrouter/fleet"
)

// gatherer is a follower without store changes. It counts the calls of AfterFollow.
func gatherer() (f *Follower, answered *int) {
	f = &Follower{shared: &shared{Changes: fleet.New(nil, fleet.Options{}).Watcher()}, followTook: time.Millisecond}
	return f, new(int)
}

func (f *Follower) waits(answered *int) {
	f.waiting = append(f.waiting, func(error) { *answered++ })
	f.FollowSoon()
}

func TestWhoComesAloneIsNotKeptWaiting(t *testing.T) {
	f, answered := gatherer()
	f.waits(answered)
	if *answered != 1 || f.Gathered != nil {
		t.Errorf("%d answers, a timer: %v", *answered, f.Gathered != nil)
	}
}

func TestTheNodeFollowsTheStoreOnceForAllThatAreOnTheirWay(t *testing.T) {
	f, answered := gatherer()
	f.followTook = time.Hour
	first, second := f.ChangePending(), f.ChangePending()
	first()
	first() // counts once
	f.waits(answered)
	if *answered != 0 || f.Gathered == nil {
		t.Fatalf("another is on its way: %d answers, a timer: %v", *answered, f.Gathered != nil)
	}
	second()
	f.waits(answered)
	if *answered != 2 || f.Gathered != nil || len(f.waiting) > 0 {
		t.Errorf("%d answers of 2, a timer: %v, %d wait", *answered, f.Gathered != nil, len(f.waiting))
	}
}

func TestWhoNeverComesIsWaitedForAShareOfThePass(t *testing.T) {
	f, answered := gatherer()
	f.ChangePending()
	f.Unfit = errors.New("no room")
	f.waiting = append(f.waiting, func(unfit error) {
		if unfit != f.Unfit {
			t.Errorf("told %v", unfit)
		}
	})
	f.waits(answered)
	select {
	case <-f.Gathered:
	case <-time.After(10 * time.Second):
		t.Fatal("the timer never fires")
	}
	f.CatchUp()
	if *answered != 1 {
		t.Errorf("%d answers", *answered)
	}
}
