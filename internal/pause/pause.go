// Package pause waits between attempts.
package pause

import (
	"context"
	"time"
)

// For waits for a duration. If the context ends first, For returns the cause.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Wake sends a value to a channel that has room for one. If the channel is full, it sends nothing: the receiver will wake
// anyway, and handles both reasons together.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
