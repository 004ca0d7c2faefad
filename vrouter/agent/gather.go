package agent

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// To look over a node with thousands of ports takes a while, whatever changed.
// Where more changes are on their way into the store it is done once for all of
// them: gather waits for those, but no longer than a share of what it took last.
const gatherShare = 4

// comes counts a request that will change the store until it is there, or
// failed; the function returned says so, and may be called again.
func (a *agent) comes() (arrived func()) {
	a.coming.Add(1)
	return sync.OnceFunc(func() { a.coming.Add(-1) })
}

// caughtUp runs then in the loop once the node follows what is in the store now;
// it is told why what stands there is not in force, if so.
func (a *agent) caughtUp(ctx context.Context, then func(unfit error) error) error {
	done := make(chan error, 1)
	select {
	case a.requests <- func() {
		a.waiting = append(a.waiting, func(unfit error) { done <- then(unfit) })
		a.gather()
	}:
		return <-done
	case <-ctx.Done():
		return fmt.Errorf("the request was given up: %w", context.Cause(ctx))
	}
}

// gather follows the store, now or soon. It works in the loop.
func (a *agent) gather() {
	if a.coming.Load() == 0 || a.followTook == 0 {
		a.catchUp()
	} else if a.gathered == nil {
		a.gathered = time.After(a.followTook / gatherShare)
	}
}

// catchUp follows the store and answers who waits for that.
func (a *agent) catchUp() {
	a.gathered = nil
	unfit := a.follow()
	for _, answer := range a.waiting {
		answer(unfit)
	}
	a.waiting = nil
}
