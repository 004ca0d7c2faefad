package stopsignal

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
)

// A closed terminal sends SIGHUP. Without a handler it would end the program without a cleanup.
func TestEachStopSignalCancelsTheContext(t *testing.T) {
	testprogram.HeedHangups()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		ctx, stop := Context()
		must.Succeed(t, syscall.Kill(syscall.Getpid(), s))
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		if err := context.Cause(ctx); !errors.Is(err, ErrInterrupted) {
			t.Errorf("after %v the context's cause is %v, want %v", s, err, ErrInterrupted)
		}
		stop()
	}
}
