package datapath

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"windtunnel/internal/netspace"

	"golang.org/x/sys/unix"
)

// MountPins mounts a bpf filesystem at dir, where none is yet, and returns the
// path by which to reach it. It is mounted in the mount namespace of process 1:
// in one of our own, such as `ip netns exec` makes, the pins would end with us.
func MountPins(dir string) (string, error) {
	path := dir
	var err error
	if inOwnMounts() {
		path = "/proc/1/root" + dir
		err = withMountsOf1(func() error { return mount(dir) })
	} else {
		err = mount(dir)
	}
	if err != nil {
		return "", fmt.Errorf("mount a bpf filesystem at %s: %w", dir, err)
	}
	return path, nil
}

// UnmountPins undoes MountPins. Remove the pins in the directory before.
func UnmountPins(dir string) error {
	unmount := func() error {
		if !isBPF(dir) {
			return nil
		}
		// On an existing bpf filesystem it is only a directory.
		if IsMounted(dir) {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				return fmt.Errorf("unmount %s: %w", dir, err)
			}
		}
		return os.Remove(dir)
	}
	if inOwnMounts() {
		return withMountsOf1(unmount)
	}
	return unmount()
}

// OwnMounts names the mount namespace in which this process started. Later its main thread can be
// in that of process 1 (withMountsOf1). netspace.Current says why this is not /proc/thread-self.
var OwnMounts = sync.OnceValues(func() (string, error) { return os.Readlink("/proc/self/ns/mnt") })

func inOwnMounts() bool {
	ours, err1 := OwnMounts()
	first, err2 := os.Readlink("/proc/1/ns/mnt")
	return err1 == nil && err2 == nil && ours != first
}

func isBPF(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Type == unix.BPF_FS_MAGIC
}

// IsMounted reports whether dir is a mount point.
func IsMounted(dir string) bool {
	var own, parent unix.Stat_t
	return unix.Stat(dir, &own) == nil && unix.Stat(filepath.Dir(dir), &parent) == nil && own.Dev != parent.Dev
}

func mount(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if isBPF(dir) { // mounted already, or below one
		return nil
	}
	return unix.Mount("bpf", dir, "bpf", 0, "mode=0700")
}

// withMountsOf1 runs f on a thread in process 1's mount namespace. The thread
// ends with it.
func withMountsOf1(f func() error) error {
	return netspace.OwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		ns, err := os.Open("/proc/1/ns/mnt")
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("enter the host's mounts: %w", err)
		}
		return f()
	})
}
