package meter

import (
	"errors"
	"fmt"
	"os"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/netspace"
)

// Namespace is a network namespace to meter.
type Namespace struct {
	Name string // container's name; empty for the node itself
	// NS may be closed after New. netns.None() is the namespace of the calling
	// thread; an agent that was started inside its node uses it for the node.
	NS netns.NsHandle
	// NoSockets: no tool runs here, so its sockets are not listed. Listing
	// walks the kernel's whole table of connections, 1.4 ms on a small machine.
	NoSockets bool
}

// namespace holds the open files and sockets of one network namespace. They
// stay in the namespace in which they were opened, so no thread has to enter it
// again. They also keep the namespace alive until close.
type namespace struct {
	name      string
	noSockets bool
	devices   []Device
	links     *netlink.Handle
	diag      *sockDiag
	drivers   *ethtool.Ethtool
	snmp      procFile
	snmp6     procFile // closed where the kernel has no IPv6
	dev       procFile
}

func openNamespace(spec Namespace, devices []Device) (*namespace, error) {
	n := &namespace{name: spec.Name, noSockets: spec.NoSockets, devices: devices, snmp: closed, snmp6: closed, dev: closed}
	err := insideOf(spec.NS, n.open)
	if err != nil {
		n.close()
		return nil, fmt.Errorf("meter namespace %q: %w", spec.Name, err)
	}
	return n, nil
}

// open opens the files and sockets of the calling thread's namespace.
func (n *namespace) open() (err error) {
	if n.links, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return err
	}
	if n.diag, err = openSockDiag(); err != nil {
		return err
	}
	if n.snmp, err = openProc("/proc/thread-self/net/snmp"); err != nil {
		return err
	}
	if n.dev, err = openProc("/proc/thread-self/net/dev"); err != nil {
		return err
	}
	if n.drivers, err = ethtool.NewEthtool(); err != nil {
		return fmt.Errorf("open a socket for driver statistics: %w", err)
	}
	if n.snmp6, err = openProc("/proc/thread-self/net/snmp6"); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (n *namespace) close() {
	if n.links != nil {
		n.links.Close()
	}
	if n.diag != nil {
		n.diag.sockets[unix.NETLINK_INET_DIAG].Close()
	}
	if n.drivers != nil {
		n.drivers.Close()
	}
	for _, f := range []procFile{n.snmp, n.snmp6, n.dev} {
		f.close()
	}
}

// insideOf runs f on a thread in the namespace. If ns is not open, it runs f on the
// calling thread.
func insideOf(ns netns.NsHandle, f func() error) error {
	if !ns.IsOpen() {
		return f()
	}
	return netspace.OwnThread(func() error {
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("enter the network namespace (needs CAP_SYS_ADMIN): %w", err)
		}
		return f()
	})
}

// read reads the counters, devices and sockets of the namespace. It calls breathe between these steps; see breather.
func (n *namespace) read(ports PortRange, buf *[]byte, breathe func()) (NamespaceReading, error) {
	r := NamespaceReading{Name: n.name, Counters: Counters{}}
	text, err := n.snmp.read(buf)
	if err == nil {
		err = ParseSNMP(text, r.Counters)
	}
	if err == nil && n.snmp6 != closed {
		if text, err = n.snmp6.read(buf); err == nil {
			err = parseSNMP6(text, r.Counters)
		}
	}
	if err != nil {
		return r, n.wrap(err)
	}
	if len(n.devices) > 0 {
		breathe()
		if r.Devices, err = readDevices(n.links, n.drivers, n.devices); err != nil {
			return r, n.wrap(err)
		}
	}
	if n.noSockets {
		return r, nil
	}
	breathe()
	if r.Sockets, err = n.diag.established(ports); err != nil {
		return r, n.wrap(err)
	}
	return r, nil
}

func (n *namespace) wrap(err error) error {
	return fmt.Errorf("meter namespace %q: %w", n.name, err)
}
