package traffic

import (
	"context"
	"os/signal"
	"sync"

	"windtunnel/internal/stopsignal"
)

// onInterrupt returns a channel that is closed at the first SIGINT, SIGTERM or SIGHUP. The
// run then ends and prints its figures. The second signal ends the program at once.
func onInterrupt() (stop <-chan struct{}, release func()) {
	ctx, release := signal.NotifyContext(context.Background(), stopsignal.List()...)
	context.AfterFunc(ctx, release)
	return ctx.Done(), release
}

// first returns a channel that is closed when one of the given channels is closed. release
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
