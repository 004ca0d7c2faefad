// Package stopsignal lists the signals that end a command.
package stopsignal

import (
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
