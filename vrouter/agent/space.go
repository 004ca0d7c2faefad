package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// space is an open network namespace of the node or of a workload.
type space struct {
	name  string // as given to openSpace
	ns    netns.NsHandle
	links *netlink.Handle
	work  chan func() // functions for the thread of stay; nil: there is no such thread
}

// noNamespaceError is the error that a network namespace does not exist.
type noNamespaceError struct {
	name, path string
}

func (e *noNamespaceError) Error() string {
	if e.name == e.path {
		return fmt.Sprintf("network namespace %s does not exist", e.path)
	}
	return fmt.Sprintf("network namespace %s does not exist (path %s); create it with `ip netns add %s`", e.name, e.path, e.name)
}

// namespaces is iproute2's directory of named namespaces.
const namespaces = "/run/netns"

// openSpace opens a namespace by name or path; "": the process's namespace.
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
			return nil, &noNamespaceError{name, path}
		}
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	links, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		ns.Close()
		if errors.Is(err, unix.EINVAL) { // setns(2): the file is not a namespace
			return nil, &noNamespaceError{name, path}
		}
		return nil, fmt.Errorf("open netlink in network namespace %s (needs root): %w", path, err)
	}
	return &space{name: name, ns: ns, links: links}, nil
}

// close closes the handles. The namespace stays.
func (s *space) close() error {
	if s.work != nil {
		close(s.work)
	}
	s.links.Close()
	return s.ns.Close()
}

// stay starts a thread in the namespace. After stay, do uses this thread; before, each
// call of do starts a new thread.
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
		return fmt.Errorf("enter network namespace %s (needs root): %w", s.name, err)
	}
	s.work = work
	return nil
}

// do runs f on a thread inside the namespace. Use it for kernel interfaces that
// depend on the thread's namespace: ifindexes in bpf(2), /proc/sys/net, ethtool.
func (s *space) do(f func() error) error {
	if s.work == nil {
		return s.once(f)
	}
	done := make(chan error, 1)
	s.work <- func() { done <- f() }
	return <-done
}

// setting is a sysctl of a device and its value.
type setting struct{ key, value string }

// sysctls sets those sysctls of a device whose values differ. family is "ipv4" or
// "ipv6". It ignores sysctls that do not exist, for kernels without IPv6.
func (s *space) sysctls(family, device string, want ...setting) error {
	return s.do(func() error {
		for _, w := range want {
			path := filepath.Join("/proc/sys/net", family, "conf", device, w.key)
			now, err := os.ReadFile(path)
			if err == nil && strings.TrimSpace(string(now)) == w.value {
				continue
			}
			err = os.WriteFile(path, []byte(w.value), 0)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("set %s of device %s to %s: %w", w.key, device, w.value, err)
			}
		}
		return nil
	})
}

// link finds a device by name; nil: it does not exist.
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

// once runs f in the namespace on a new thread. Use it for calls that take long,
// because do would block.
func (s *space) once(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := netns.Set(s.ns); err != nil {
			done <- fmt.Errorf("enter network namespace %s (needs root): %w", s.name, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// globalAddresses returns the addresses with global scope of some devices.
func (s *space) globalAddresses(devices []string) (all []netip.Addr, err error) {
	for _, name := range devices {
		l, err := s.link(name)
		if err != nil {
			return nil, err
		}
		if l == nil {
			return nil, fmt.Errorf("fabric device %s does not exist", name)
		}
		addresses, err := s.links.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			return nil, fmt.Errorf("list the addresses of %s: %w", name, err)
		}
		for _, a := range addresses {
			if ip, ok := netip.AddrFromSlice(a.IP); ok && a.Scope == unix.RT_SCOPE_UNIVERSE {
				all = append(all, ip.Unmap())
			}
		}
	}
	return all, nil
}
