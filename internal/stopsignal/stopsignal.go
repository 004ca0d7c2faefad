// Package stopsignal ends a command at the signals that stop it.
package stopsignal

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// List returns SIGINT, SIGTERM, and SIGHUP, which comes from a closed terminal. A program that
// ignores SIGHUP, as under nohup(1), keeps ignoring it.
func List() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// ErrInterrupted is the cause of a context that a signal cancelled.
var ErrInterrupted = errors.New("interrupted")

// ExitCode is the exit code of a program that a signal ended.
const ExitCode = 130

// Context returns a context that the first of the signals cancels, so that the command can clean
// up. The second signal ends the program at once. stop ends the handling of signals.
func Context() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, List()...)
	go func() {
		<-signals
		cancel(ErrInterrupted)
		<-signals
		os.Exit(ExitCode)
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}
