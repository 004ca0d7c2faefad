package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// space is an open network namespace: the node's, or a workload's.
type space struct {
	name  string // as it was asked for
	ns    netns.NsHandle
	links *netlink.Handle
	work  chan func() // to a thread inside; nil until the first do
}

// noSpaceError says that a namespace does not exist (any more).
type noSpaceError struct {
	name, path string
}

func (e *noSpaceError) Error() string {
	if e.name == e.path {
		return fmt.Sprintf("network namespace %s does not exist", e.path)
	}
	return fmt.Sprintf("network namespace %s does not exist (looked for %s); make it with `ip netns add %s`", e.name, e.path, e.name)
}

// namespaces is where iproute2 keeps named namespaces.
const namespaces = "/run/netns"

// openSpace opens a namespace by name or path; "" is the process's own.
func openSpace(name string) (*space, error) {
	path := name
	switch {
	case name == "":
		path = "/proc/self/ns/net"
	case !strings.ContainsRune(name, '/'):
		path = filepath.Join(namespaces, name)
	}
	ns, err := netns.GetFromPath(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &noSpaceError{name, path}
		}
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	links, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		ns.Close()
		if errors.Is(err, unix.EINVAL) { // setns(2): no namespace is behind the file
			return nil, &noSpaceError{name, path}
		}
		return nil, fmt.Errorf("open netlink in network namespace %s (root is needed): %w", path, err)
	}
	return &space{name: name, ns: ns, links: links}, nil
}

// close gives the handles back. The namespace itself stays.
func (s *space) close() error {
	if s.work != nil {
		close(s.work)
	}
	s.links.Close()
	return s.ns.Close()
}

// stay keeps a thread in the namespace for do. It is for a namespace that is
// entered often; before it, or without it, each do makes a thread of its own.
func (s *space) stay() error {
	work, entered := make(chan func()), make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		entered <- netns.Set(s.ns)
		for f := range work {
			f()
		}
	}()
	if err := <-entered; err != nil {
		close(work)
		return fmt.Errorf("enter network namespace %s (root is needed): %w", s.name, err)
	}
	s.work = work
	return nil
}

// do runs f on a thread inside the namespace: what takes no handle (device
// numbers in bpf(2), /proc/sys/net, ethtool) means that namespace's there.
func (s *space) do(f func() error) error {
	done := make(chan error, 1)
	if s.work != nil {
		s.work <- func() { done <- f() }
		return <-done
	}
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(s.ns); err != nil {
			done <- fmt.Errorf("enter network namespace %s (root is needed): %w", s.name, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// sysctl sets a device's setting. family is "ipv4" or "ipv6". A kernel without
// it (IPv6 left out) needs none.
func (s *space) sysctl(family, device, key, value string) error {
	path := filepath.Join("/proc/sys/net", family, "conf", device, key)
	err := s.do(func() error {
		if now, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(now)) == value {
			return nil
		}
		return os.WriteFile(path, []byte(value), 0)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set %s of device %s to %s: %w", key, device, value, err)
	}
	return nil
}

// link finds a device by name; nil when there is none.
func (s *space) link(name string) (netlink.Link, error) {
	l, err := s.links.LinkByName(name)
	if err != nil {
		var none netlink.LinkNotFoundError
		if errors.As(err, &none) {
			return nil, nil
		}
		return nil, fmt.Errorf("find device %s: %w", name, err)
	}
	return l, nil
}
