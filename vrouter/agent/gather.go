package agent

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// gatherShare limits the time to gather changes. A pass over thousands of ports is
// slow. If more changes are being committed, followSoon waits for them, for at most
// 1/gatherShare of the duration of the last pass.
const gatherShare = 4

// changePending counts a request that will change the store. arrived ends the
// count, when the change is committed or has failed; it is idempotent.
func (a *agent) changePending() (arrived func()) {
	a.coming.Add(1)
	return sync.OnceFunc(func() { a.coming.Add(-1) })
}

// afterFollow runs then in the loop once the node uses the present state of the
// store. unfit is why the node cannot use it, else nil.
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

// followSoon follows the store now, or after gathering changes. It runs in the
// loop.
func (a *agent) followSoon() {
	if a.coming.Load() == 0 || a.followTook == 0 {
		a.catchUp()
	} else if a.gathered == nil {
		a.gathered = time.After(a.followTook / gatherShare)
	}
}

// catchUp follows the store and calls the waiting functions.
func (a *agent) catchUp() {
	a.gathered = nil
	unfit := a.follow()
	for _, answer := range a.waiting {
		answer(unfit)
	}
	a.waiting = nil
}
