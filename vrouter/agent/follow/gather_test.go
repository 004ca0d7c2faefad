package follow

import (
	"errors"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fleet"
)

// gatherer returns a follower without store changes. answered is the number of answered
// requests.
func gatherer() (f *Follower, answered *int) {
	f = &Follower{shared: &shared{Changes: fleet.New(nil, fleet.Options{}).Watcher()}, followTook: time.Millisecond}
	return f, new(int)
}

// request adds a waiting request and lets the follower decide when to answer it.
func (f *Follower) request(answered *int) {
	f.waiting = append(f.waiting, func(error) { *answered++ })
	f.FollowSoon()
}

func TestASingleRequestIsAppliedAtOnce(t *testing.T) {
	f, answered := gatherer()
	f.request(answered)
	if *answered != 1 || f.Gathered != nil {
		t.Errorf("%d requests are answered, and the timer is set: %v; want 1 and no timer", *answered, f.Gathered != nil)
	}
}

func TestTheNodeAppliesPendingChangesOnce(t *testing.T) {
	f, answered := gatherer()
	f.followTook = time.Hour
	first, second := f.ChangePending(), f.ChangePending()
	first()
	first() // the second call has no effect
	f.request(answered)
	if *answered != 0 || f.Gathered == nil {
		t.Fatalf("while a change is pending, %d requests are answered, and the timer is set: %v; want 0 and a timer", *answered, f.Gathered != nil)
	}
	second()
	f.request(answered)
	if *answered != 2 || f.Gathered != nil || len(f.waiting) > 0 {
		t.Errorf("%d requests are answered, the timer is set: %v, and %d requests wait; want 2, no timer and 0", *answered, f.Gathered != nil, len(f.waiting))
	}
}

func TestTheWaitForAPendingChangeEnds(t *testing.T) {
	f, answered := gatherer()
	f.ChangePending()
	f.Unfit = errors.New("no room")
	f.waiting = append(f.waiting, func(unfit error) {
		if unfit != f.Unfit {
			t.Errorf("the request gets error %v, want %v", unfit, f.Unfit)
		}
	})
	f.request(answered)
	select {
	case <-f.Gathered:
	case <-time.After(10 * time.Second):
		t.Fatal("the timer did not fire within 10 s")
	}
	f.CatchUp()
	must.Equal(t, 1, *answered)
}
