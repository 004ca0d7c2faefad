package netspace_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
)

// OwnThread must not call its function on the main thread of the process. That thread never ends,
// so it would stay in the network namespace that the function enters.
func TestOwnThreadIsNeverTheMainThread(t *testing.T) {
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
		t.Errorf("OwnThread called %d of 2000 functions on the process's main thread; want none", main)
	}
}
