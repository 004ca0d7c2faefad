// Package netspace creates, opens and deletes named network namespaces as iproute2 does.
package netspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
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
	err := netns.DeleteNamed(name)
	if errors.Is(err, unix.EINVAL) { // not a mount point: a process was killed while it created or deleted the namespace
		err = unix.Unlink(filepath.Join(Dir, name))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
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
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The process's main thread does not end with a goroutine, so it would keep what f
			// changes. While it is locked here, the runtime runs f on another thread.
			defer runtime.UnlockOSThread()
			done <- OwnThread(f)
			return
		}
		// Go ends a thread if its goroutine returns without unlocking it.
		done <- f()
	}()
	return <-done
}

// Current opens the network namespace of the calling thread. It asks a socket, because files of
// /proc/thread-self are slow at the end of a process with many threads: the parent waits some
// milliseconds while the kernel drops them from its cache (fs/proc/base.c, proc_flush_pid).
func Current() (netns.NsHandle, error) {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return netns.None(), err
	}
	defer unix.Close(s)
	ns, err := unix.IoctlRetInt(s, unix.SIOCGSKNS)
	if err != nil { // the ioctl needs CAP_NET_ADMIN
		return netns.GetFromPath("/proc/thread-self/ns/net") // /proc/self is the main thread, which may be in another namespace
	}
	return netns.NsHandle(ns), nil
}

// Links opens netlink's NETLINK_ROUTE in a network namespace, which needs root.
func Links(ns netns.NsHandle) (h *netlink.Handle, err error) {
	err = OwnThread(func() (err error) {
		if err = netns.Set(ns); err == nil {
			h, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		}
		return err
	})
	return h, err
}

// ErrOther says that a file is not a network namespace.
var ErrOther = errors.New("the file is not a network namespace")

// resolveCached is RESOLVE_CACHED of openat2(2).
const resolveCached = 0x20

// Limits of Open.
const (
	openWait  = time.Second // for a file system that does not answer
	maxSilent = 16          // paths that are waited for at the same time; each holds a thread
)

// silent has the paths whose file system has not answered yet.
var silent = struct {
	sync.Mutex
	paths map[string]bool
}{paths: map[string]bool{}}

// Open opens a network namespace by a path from an untrusted client. It opens only files of the
// kernel's namespace file system (nsfs): opening a FIFO can block, and opening a device node can have
// side effects. It returns an error if a file system, such as FUSE or NFS, does not answer.
func Open(path string) (netns.NsHandle, error) {
	fail := func(format string, args ...any) (netns.NsHandle, error) {
		return netns.None(), &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf(format, args...)}
	}
	silent.Lock()
	waits, many := silent.paths[path], len(silent.paths) >= maxSilent
	silent.Unlock()
	switch {
	case waits:
		return fail("its file system does not answer")
	case many: // open only what the kernel has in memory
		resolve := uint64(resolveCached)
		if isProcess, _ := filepath.Match("/proc/*/ns/net", path); isProcess {
			resolve = 0 // the kernel itself answers
		}
		ns, err := openNamespace(path, resolve)
		if errors.Is(err, unix.EAGAIN) {
			return fail("the file systems of %d other paths do not answer; remove those mounts", maxSilent)
		}
		return ns, err
	}
	type result struct {
		ns  netns.NsHandle
		err error
	}
	done := make(chan result, 1)
	go func() {
		ns, err := openNamespace(path, 0)
		done <- result{ns, err}
	}()
	select {
	case r := <-done:
		return r.ns, r.err
	case <-time.After(openWait):
	}
	silent.Lock()
	defer silent.Unlock()
	silent.paths[path] = true
	go func() {
		r := <-done
		r.ns.Close()
		silent.Lock()
		defer silent.Unlock()
		delete(silent.paths, path)
	}()
	return fail("its file system does not answer")
}

// openNamespace checks the file before it opens it. resolve are flags of openat2(2).
func openNamespace(path string, resolve uint64) (netns.NsHandle, error) {
	fail := func(err error) (netns.NsHandle, error) {
		return netns.None(), &fs.PathError{Op: "open", Path: path, Err: err}
	}
	file, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err != nil {
		return fail(err)
	}
	defer unix.Close(file)
	var system unix.Statfs_t
	var stat unix.Stat_t
	if err := errors.Join(unix.Fstatfs(file, &system), unix.Fstat(file, &stat)); err != nil {
		return fail(err)
	}
	if system.Type != unix.NSFS_MAGIC || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return fail(ErrOther)
	}
	ns, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", file), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	if kind, err := unix.IoctlRetInt(ns, unix.NS_GET_NSTYPE); err != nil || kind != unix.CLONE_NEWNET {
		unix.Close(ns)
		return fail(ErrOther)
	}
	return netns.NsHandle(ns), nil
}
