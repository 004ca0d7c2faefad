// Package netdev changes the kernel's state on one node: namespaces, devices, addresses,
// bandwidth limits, neighbours and attached programs. Each function configures one kind of
// object. Package reconcile decides the order of the calls.
package netdev

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/netspace"
	"windtunnel/vrouter/agent/config"
)

// Space is an open network namespace of the node or of a workload.
type Space struct {
	Name  string // as given to Open
	Ns    netns.NsHandle
	Links *netlink.Handle
	home  *thread // runs the functions of Do; nil: each call starts a new thread
	owner bool    // Close ends the thread

	chains map[string]checkedChains // of KeepAccess, by IP version
}

// thread is a thread in the node's network namespace.
type thread struct {
	id   int
	ns   netns.NsHandle
	work chan func()
}

// NoNamespaceError is the error that a network namespace does not exist.
type NoNamespaceError struct {
	name, path string
	other      bool // the path is another file
}

func (e *NoNamespaceError) Error() string {
	switch {
	case e.other:
		return fmt.Sprintf("the file %s is not a network namespace", e.path)
	case e.name == e.path:
		return fmt.Sprintf("network namespace %s does not exist", e.path)
	}
	return fmt.Sprintf("network namespace %s does not exist (path %s); create it with `ip netns add %s`", e.name, e.path, e.name)
}

// Open opens a namespace by name or path; "": the process's namespace.
func Open(name string) (*Space, error) {
	path, open := name, netspace.Open
	switch {
	case name == "":
		path, open = "of this process", func(string) (netns.NsHandle, error) { return netspace.Current() }
	case !strings.ContainsRune(name, '/'):
		path = filepath.Join(netspace.Dir, name)
	}
	ns, err := open(path)
	if err != nil {
		if other := errors.Is(err, netspace.ErrOther); other || errors.Is(err, fs.ErrNotExist) {
			return nil, &NoNamespaceError{name, path, other}
		}
		return nil, fmt.Errorf("open network namespace %s: %w", name, err)
	}
	links, err := netspace.Links(ns)
	if err != nil {
		ns.Close()
		return nil, fmt.Errorf("open netlink in network namespace %s (needs root): %w", path, err)
	}
	return &Space{Name: name, Ns: ns, Links: links}, nil
}

// OpenWorkload opens a workload's namespace by name or path. It refuses the namespaces of the
// node, of process 1 and of this process. The check is necessary because every client that can
// add a port to the store can set any path.
func OpenWorkload(name string, node *Space) (*Space, error) {
	s, err := Open(name)
	if err != nil {
		return nil, err
	}
	if err := s.checkWorkload(node); err != nil {
		s.Close()
		return nil, fmt.Errorf("open the workload's network namespace %s: %w", name, err)
	}
	return s, nil
}

// processNs is the network namespace in which this process started. Some threads enter others.
var processNs = sync.OnceValues(func() (ns netns.NsHandle, err error) {
	err = netspace.OwnThread(func() (err error) {
		ns, err = netspace.Current()
		return err
	})
	return ns, err
})

func (s *Space) checkWorkload(node *Space) error {
	own, err := processNs()
	if err != nil {
		return fmt.Errorf("compare it with the namespace of the agent: %w", err)
	}
	forbidden := s.Ns.Equal(node.Ns) || s.Ns.Equal(own)
	if first, err := netns.GetFromPath("/proc/1/ns/net"); err == nil {
		forbidden = forbidden || s.Ns.Equal(first)
		first.Close()
	} else if !forbidden { // this process has fewer capabilities than process 1, as in many containers
		if forbidden, err = s.isInitial(); err != nil {
			return fmt.Errorf("compare it with the namespace of process 1: %w", err)
		}
	}
	if forbidden {
		return errors.New("it is the namespace of the node, of its agent or of process 1, which workloads must not use; to connect the node itself, set attach.host: true")
	}
	return nil
}

// isInitial reports whether this is the machine's initial network namespace. Only the initial
// namespace has the sysctls that apply to the whole machine, such as net.core.dev_weight.
func (s *Space) isInitial() (initial bool, err error) {
	err = s.Do(func() error {
		_, err := os.Stat("/proc/sys/net/core/dev_weight")
		if initial = err == nil; errors.Is(err, fs.ErrNotExist) {
			_, err = os.Stat("/proc/sys/net/core")
		}
		return err
	})
	return initial, err
}

// OpenNode opens the node's network namespace and starts a thread in it.
func OpenNode(c config.Config) (*Space, error) {
	s, err := Open(c.Netns)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", c.Node, err)
	}
	if err := s.stay(); err != nil {
		s.Close()
		return nil, fmt.Errorf("node %s: %w", c.Node, err)
	}
	return s, nil
}

// Close closes the handles. The namespace stays.
func (s *Space) Close() error {
	if s.owner {
		close(s.home.work)
	}
	s.Links.Close()
	return s.Ns.Close()
}

// stay starts a thread in the namespace. After stay, Do uses this thread; before, each
// call of Do starts a new thread.
func (s *Space) stay() error {
	t, entered := &thread{ns: s.Ns, work: make(chan func())}, make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		t.id = unix.Gettid()
		entered <- netns.Set(s.Ns)
		for f := range t.work {
			f()
		}
	}()
	if err := <-entered; err != nil {
		close(t.work)
		return fmt.Errorf("enter network namespace %s (needs root): %w", s.Name, err)
	}
	s.home, s.owner = t, true
	return nil
}

// Do runs f on a thread inside the namespace. Use it for kernel interfaces that
// depend on the thread's namespace: ifindexes in bpf(2), /proc/sys/net, ethtool. f may call Do of
// a workload's namespace, but not Do of the node's namespace from there.
func (s *Space) Do(f func() error) error {
	t := s.home
	if t == nil {
		return s.Once(f)
	}
	if s.Ns != t.ns {
		f = t.visit(s, f)
	}
	if unix.Gettid() == t.id {
		return f()
	}
	done := make(chan error, 1)
	t.work <- func() { done <- f() }
	return <-done
}

// visit makes f run in another namespace. The thread then returns to its own namespace.
func (t *thread) visit(s *Space, f func() error) func() error {
	return func() error {
		if err := netns.Set(s.Ns); err != nil {
			return fmt.Errorf("enter network namespace %s (needs root): %w", s.Name, err)
		}
		defer func() {
			if err := netns.Set(t.ns); err != nil {
				panic(fmt.Sprintf("return to the node's network namespace: %v", err))
			}
		}()
		return f()
	}
}

// Setting is a sysctl of a device and its value.
type Setting struct{ Key, Value string }

// Sysctls sets those sysctls of a device whose values differ. family is "ipv4" or
// "ipv6". It ignores sysctls that do not exist, for kernels without IPv6.
func (s *Space) Sysctls(family, device string, want ...Setting) error {
	return s.Do(func() error {
		for _, w := range want {
			err := setSysctl(filepath.Join("/proc/sys/net", family, "conf", device, w.Key), w.Value)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("set %s of device %s to %s: %w", w.Key, device, w.Value, err)
			}
		}
		return nil
	})
}

// setSysctl sets a sysctl if its value differs. It opens the file only once, and not with package
// os, which would add it to the poller: for thousands of devices that takes most of the time.
func setSysctl(path, value string) error {
	fd, refused := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if errors.Is(refused, unix.EROFS) || errors.Is(refused, fs.ErrPermission) { // the value may be right
		fd, _ = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if fd < 0 {
		return refused
	}
	defer unix.Close(fd)
	var now [32]byte
	if n, err := unix.Pread(fd, now[:], 0); err == nil && strings.TrimSpace(string(now[:n])) == value {
		return nil
	}
	if refused != nil {
		return refused
	}
	_, err := unix.Pwrite(fd, []byte(value), 0)
	return err
}

// Link finds a device by name; nil: it does not exist.
func (s *Space) Link(name string) (netlink.Link, error) {
	l, err := s.Links.LinkByName(name)
	if err != nil {
		var none netlink.LinkNotFoundError
		if errors.As(err, &none) {
			return nil, nil
		}
		return nil, fmt.Errorf("find device %s: %w", name, err)
	}
	return l, nil
}

// Once runs f in the namespace on a new thread. Use it for calls that take long,
// because Do would block.
func (s *Space) Once(f func() error) error {
	return netspace.OwnThread(func() error {
		if err := netns.Set(s.Ns); err != nil {
			return fmt.Errorf("enter network namespace %s (needs root): %w", s.Name, err)
		}
		return f()
	})
}

// unsteady are the flags (rtnetlink(7)) of addresses that other nodes should not rely on: secondary
// IPv4 addresses, temporary IPv6 addresses (the same flag), and deprecated or failed addresses.
const unsteady = unix.IFA_F_SECONDARY | unix.IFA_F_DEPRECATED | unix.IFA_F_DADFAILED

// UnderlayAddresses returns the stable global addresses of some devices. It includes addresses with
// a prefix of 32 or 128 bits only if there are no others: such an address may be a virtual IP that
// moves between nodes.
func (s *Space) UnderlayAddresses(devices []string) ([]netip.Addr, error) {
	var all, single []netip.Addr
	for _, name := range devices {
		l, err := s.Link(name)
		if err != nil {
			return nil, err
		}
		if l == nil {
			return nil, fmt.Errorf("fabric device %s does not exist", name)
		}
		addresses, err := s.Links.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			return nil, fmt.Errorf("list the addresses of %s: %w", name, err)
		}
		for _, a := range addresses {
			p, ok := PrefixOf(a.IPNet)
			switch {
			case !ok || a.Scope != unix.RT_SCOPE_UNIVERSE || a.Flags&unsteady != 0:
			case p.IsSingleIP():
				single = append(single, p.Addr())
			default:
				all = append(all, p.Addr())
			}
		}
	}
	if len(all) == 0 {
		return single, nil
	}
	return all, nil
}

// Addresses returns the addresses of all devices.
func (s *Space) Addresses() (map[netip.Addr]bool, error) {
	addresses, err := listAddresses(s.Links)
	if err != nil {
		return nil, err
	}
	all := map[netip.Addr]bool{}
	for _, a := range addresses {
		if p, ok := PrefixOf(a.IPNet); ok {
			all[p.Addr()] = true
		}
	}
	return all, nil
}
