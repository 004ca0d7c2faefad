// Package space makes, enters and removes network namespaces. It sets devices,
// sysctls and offloads inside a namespace without moving the calling thread, and
// records the settings.
package space

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/netspace"
)

// Dir is the directory in which named network namespaces are bound.
const Dir = netspace.Dir

// Space is an open network namespace.
type Space struct {
	Name   string // as `ip netns` shows it; "" for the process's namespace
	NS     netns.NsHandle
	Links  *netlink.Handle // netlink within the namespace
	sysfs  int             // fd of a detached sysfs mount that shows the namespace's devices; −1 before use
	mu     sync.Mutex
	record Settings
}

// Create makes a named namespace and sets its loopback device up. It fails if the
// name exists.
func Create(name string) (*Space, error) {
	if _, err := os.Stat(filepath.Join(Dir, name)); err == nil {
		return nil, fmt.Errorf("create network namespace %s: it exists already; `windtunnel lab clean` removes the leftovers of killed runs", name)
	}
	ns, err := netspace.Create(name)
	if err != nil {
		return nil, fmt.Errorf("create network namespace %s (root is needed): %w", name, err)
	}
	s, err := fromHandle(name, ns)
	if err != nil {
		return nil, errors.Join(err, Delete(name))
	}
	if err := s.Up("lo"); err != nil {
		return nil, errors.Join(err, s.Close(), Delete(name))
	}
	return s, nil
}

// Open opens an existing namespace; "" is the process's namespace.
func Open(name string) (*Space, error) {
	ns, err := openHandle(name)
	if err != nil {
		return nil, fmt.Errorf("open network namespace %q: %w", name, err)
	}
	return fromHandle(name, ns)
}

// fromHandle makes a Space of an open namespace. After an error it closes the
// namespace.
func fromHandle(name string, ns netns.NsHandle) (*Space, error) {
	links, err := netspace.Links(ns)
	if err != nil && name == "" { // see Enter
		links, err = netlink.NewHandle(unix.NETLINK_ROUTE)
	}
	if err != nil {
		ns.Close()
		return nil, fmt.Errorf("open netlink in namespace %q: %w", name, err)
	}
	return &Space{Name: name, NS: ns, Links: links, sysfs: -1}, nil
}

func openHandle(name string) (netns.NsHandle, error) {
	if name == "" {
		return netspace.Current()
	}
	return netns.GetFromName(name)
}

// String names the namespace in errors.
func (s *Space) String() string {
	if s.Name == "" {
		return "the current network namespace"
	}
	return "network namespace " + s.Name
}

// Close releases the handles; the namespace itself stays.
func (s *Space) Close() error {
	s.Links.Close()
	if s.sysfs >= 0 {
		unix.Close(s.sysfs)
		s.sysfs = -1
	}
	return s.NS.Close()
}

// Delete removes a named namespace with all its devices, and its home. It returns a
// borrowed device before. If the device cannot be returned, everything stays. If some of its
// settings cannot be restored, the error names them, and Delete removes everything. A missing
// name is no error.
func Delete(name string) error {
	lost, err := giveBack(name)
	if err != nil {
		return err
	}
	if err := netspace.Delete(name); err != nil {
		return errors.Join(lost, err)
	}
	return errors.Join(lost, forgetLoan(name), DeleteHome(name))
}

// Inode returns the inode of the namespace, as /proc/PID/ns/net shows it.
func (s *Space) Inode() (uint32, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(s.NS), &st); err != nil {
		return 0, fmt.Errorf("stat %s: %w", s, err)
	}
	return uint32(st.Ino), nil
}

// Do runs f on a thread inside the namespace. Sockets, and files under /proc, that f
// opens belong to the namespace also after f has returned.
func (s *Space) Do(f func() error) error {
	return netspace.OwnThread(func() error {
		if err := s.Enter(); err != nil {
			return err
		}
		return f()
	})
}

// Enter moves the calling thread to the namespace. The thread must be locked to its
// goroutine. setns(2) needs CAP_SYS_ADMIN also if the thread is in the namespace already;
// then Enter needs no privilege.
func (s *Space) Enter() error {
	err := netns.Set(s.NS)
	if errors.Is(err, unix.EPERM) && s.isCurrent() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("enter %s: %w", s, err)
	}
	return nil
}

// isCurrent reports whether the calling thread is in the namespace.
func (s *Space) isCurrent() bool {
	current, err := netspace.Current()
	if err != nil {
		return false
	}
	defer current.Close()
	return s.NS.Equal(current)
}

// NamePrefix starts the names of all namespaces of the lab, so that Clean finds the namespaces
// of killed runs.
const (
	NamePrefix = "wt-"
	RunPrefix  = NamePrefix + "run"  // of measuring runs
	LabPrefix  = NamePrefix + "lab-" // of testbeds that `windtunnel lab` made
)

// RunID is the id of a run's testbeds.
func RunID(pid int) string { return fmt.Sprintf("run%x", pid) }

// labName writes a suite's name without "-", which separates the parts of a namespace's name.
// Different suites have different names: each "." begins a pair.
var labName = strings.NewReplacer("-", "_", "_", "._", ".", "..")

// LabID is the id of the testbed of a suite that is brought up by hand: lab-quick_overlay of the
// suite quick-overlay. No TestbedPrefix of such an id is the beginning of another one.
func LabID(suite string) string { return "lab-" + labName.Replace(suite) }

// TestbedPrefix returns the start of the names of all namespaces of a testbed.
func TestbedPrefix(id string) string { return NamePrefix + id + "-" }
