package agent

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// gatherShare limits the time to gather changes. A pass over thousands of ports is
// slow, so one pass should apply several changes. If other changes are being
// committed, followSoon waits for them, at most 1/gatherShare of followTook.
const gatherShare = 4

// changePending counts a request that will change the store. Call arrived when the
// change is committed or has failed; more calls have no effect.
func (a *agent) changePending() (arrived func()) {
	a.coming.Add(1)
	return sync.OnceFunc(func() { a.coming.Add(-1) })
}

// afterFollow applies the store's changes to the node, and then calls then in the
// loop. unfit is the reason why the node cannot use the store's state; nil: it does.
func (a *agent) afterFollow(ctx context.Context, then func(unfit error) error) error {
	done := make(chan error, 1)
	select {
	case a.requests <- func() {
		a.waiting = append(a.waiting, func(unfit error) { done <- then(unfit) })
		a.followSoon()
	}:
		return <-done
	case <-ctx.Done():
		return fmt.Errorf("the request was cancelled: %w", context.Cause(ctx))
	}
}

// followSoon applies the store's changes now, or after gathering more. Call it in
// the loop.
func (a *agent) followSoon() {
	if a.coming.Load() == 0 || a.followTook == 0 {
		a.catchUp()
	} else if a.gathered == nil {
		a.gathered = time.After(a.followTook / gatherShare)
	}
}

// catchUp applies the store's changes and calls the waiting functions.
func (a *agent) catchUp() {
	a.gathered = nil
	unfit := a.follow()
	for _, answer := range a.waiting {
		answer(unfit)
	}
	a.waiting = nil
}
