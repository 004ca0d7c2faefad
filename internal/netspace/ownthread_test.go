package netspace_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
)

// The main thread of a process does not end with a goroutine that is locked to it. So a function
// that changes its thread must not run there: the main thread would keep the change, such as a
// network namespace or a set of CPUs.
func TestNoFunctionHasTheMainThreadOfTheProcess(t *testing.T) {
	main := 0
	for range 2000 {
		must.Succeed(t, netspace.OwnThread(func() error {
			if unix.Gettid() == unix.Getpid() {
				main++
			}
			return nil
		}))
	}
	if main > 0 {
		t.Errorf("%d of 2000 functions ran on the main thread", main)
	}
}
