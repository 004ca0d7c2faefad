package follow

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// maxGather limits the wait for changes that are being committed. On a busy machine a pass takes much longer than
// its CPU time. Without a limit, each slow pass would delay the next one. The limit of 150 ms
// was compared with 20 ms: 64 simultaneous clients added 5,000 ports in 11 s instead of 13 s (docs/fleet.md).
const maxGather = 150 * time.Millisecond

// ChangePending counts a request that will change the store. Call arrived when the
// change is committed or has failed; more calls have no effect.
func (f *Follower) ChangePending() (arrived func()) {
	f.coming.Add(1)
	return sync.OnceFunc(func() { f.coming.Add(-1) })
}

// AfterFollow applies the store's changes to the node, and then calls then in the
// loop. unfit is the reason why the node cannot use the store's state; nil: it uses
// the state.
func (f *Follower) AfterFollow(ctx context.Context, then func(unfit error) error) error {
	done := make(chan error, 1)
	select {
	case f.Requests <- func() {
		f.waiting = append(f.waiting, func(unfit error) { done <- then(unfit) })
		f.FollowSoon()
	}:
		return <-done
	case <-ctx.Done():
		return fmt.Errorf("the request was cancelled: %w", context.Cause(ctx))
	}
}

// Ask runs do in the loop and waits for it.
func (f *Follower) Ask(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	select {
	case f.Requests <- func() { done <- do() }:
		return <-done
	case <-ctx.Done():
		return fmt.Errorf("the request was cancelled: %w", context.Cause(ctx))
	}
}

// FollowSoon applies the store's changes now. If other changes are being committed, FollowSoon
// waits for them, at most followTook: a pass over thousands of ports is slow, so one pass should
// apply several changes. Call it in the loop.
func (f *Follower) FollowSoon() {
	if f.coming.Load() == 0 || f.followTook == 0 {
		f.CatchUp()
	} else if f.Gathered == nil {
		f.Gathered = time.After(f.followTook)
	}
}

// CatchUp applies the store's changes and calls the waiting functions.
func (f *Follower) CatchUp() {
	f.Gathered = nil
	unfit := f.Follow()
	for _, answer := range f.waiting {
		answer(unfit)
	}
	f.waiting = nil
}
