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

// Wake sends to a channel with room for one value. It sends nothing if a value is already waiting: the receiver then handles
// both reasons at once.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
