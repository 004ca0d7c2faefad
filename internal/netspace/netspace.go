// Package netspace creates and deletes named network namespaces as iproute2 does.
package netspace

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Dir is the directory in which named network namespaces are bound.
const Dir = "/run/netns"

// Create makes a named network namespace. The caller closes the handle; Delete removes the
// namespace. The calling thread stays in its namespace.
func Create(name string) (netns.NsHandle, error) {
	if err := mountDir(); err != nil {
		return netns.None(), err
	}
	var ns netns.NsHandle
	err := OwnThread(func() (err error) {
		ns, err = netns.NewNamed(name) // moves the thread into the new namespace
		return err
	})
	return ns, err
}

// Delete removes a named network namespace. A missing name is no error.
func Delete(name string) error {
	if err := netns.DeleteNamed(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("delete network namespace %s: %w", name, err)
	}
	return nil
}

// mountDir makes Dir a shared mount point, as `ip netns add` does (iproute2, ip/ipnetns.c). If
// Dir became one later, its mount would cover the namespaces made before: the kernel refuses
// to remove their names (EBUSY). The lock is the one that `ip netns add` takes.
func mountDir() error {
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", Dir, err)
	}
	share := func() error { return unix.Mount("", Dir, "none", unix.MS_SHARED|unix.MS_REC, "") }
	err = share()
	if errors.Is(err, unix.EINVAL) { // not a mount point
		if err = unix.Mount(Dir, Dir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = share()
		}
	}
	if err != nil {
		return fmt.Errorf("make %s a shared mount point: %w", Dir, err)
	}
	return nil
}

// OwnThread calls f on a thread that ends with the call, so that f may change the thread's
// namespaces.
func OwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- f()
	}()
	return <-done
}
