package traffic

import (
	"context"
	"os/signal"
	"sync"
	"syscall"
)

// onInterrupt closes the channel it returns on the first SIGINT or SIGTERM, so
// that a run ends with its figures so far. The second one ends the program at
// once.
func onInterrupt() (stop <-chan struct{}, release func()) {
	ctx, release := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, release)
	return ctx.Done(), release
}

// first closes the channel it returns when one of the others is closed; release
// ends the wait.
func first(others ...<-chan struct{}) (any <-chan struct{}, release func()) {
	out, released := make(chan struct{}), make(chan struct{})
	var once sync.Once
	for _, ch := range others {
		go func() {
			select {
			case <-ch:
				once.Do(func() { close(out) })
			case <-released:
			}
		}()
	}
	return out, func() { close(released) }
}
