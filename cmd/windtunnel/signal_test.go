package main

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/testprogram"
)

// A closed terminal sends SIGHUP. Without a handler it would end the program without a cleanup.
func TestEachStopSignalCancelsTheContext(t *testing.T) {
	testprogram.HeedHangups()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		ctx, stop := interruptible()
		if err := syscall.Kill(syscall.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		if err := context.Cause(ctx); !errors.Is(err, errInterrupted) {
			t.Errorf("after %v the context's cause is %v, want %v", s, err, errInterrupted)
		}
		stop()
	}
}

func TestAClosedTerminalEndsARunAndRemovesItsNamespaces(t *testing.T) {
	h := newHome(t)
	cmd := h.untilTrials(1, "run", "slow.yaml", "--gates", "warn")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("the run ended with %v, want exit status 130", err)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
