package space

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// loan describes a device of the host that is in a namespace of the lab, with
// everything that the kernel drops when a device changes its namespace. It is stored
// in the namespace's home, so that another process can return the device.
type loan struct {
	Host      uint32 // inode of the host's network namespace
	Device    string
	MTU       int
	Up        bool
	Addresses []loanAddress
	Routes    []loanRoute
	Sysctls   map[string]string // files below /proc/sys/net
	Features  map[string]bool   // requested offload features, by the kernel's names
}

type loanAddress struct {
	Net   net.IPNet
	Label string
	Flags int
	Scope int
	Peer  *net.IPNet
	// Broadcast is nil if the address has none.
	Broadcast              net.IP
	ValidLft, PreferredLft int
}

type loanRoute struct {
	Dst                              *net.IPNet
	Src, Gw                          net.IP
	Scope, Protocol, Table, Priority int
	MTU, AdvMSS                      int
	Congctl                          string
}

const loanFile = "device.json"

// Borrow moves a device of the process's namespace into s. Delete returns the device,
// with its addresses, routes, MTU, sysctls and offloads. The device is down afterwards.
func (s *Space) Borrow(device string) error {
	host, err := Open("")
	if err != nil {
		return err
	}
	defer host.Close()
	l, err := host.Link(device)
	if err != nil {
		return err
	}
	b, err := host.describeLoan(l)
	if err != nil {
		return fmt.Errorf("read the settings of device %s: %w", device, err)
	}
	if err := b.save(s.Name); err != nil {
		return err
	}
	if err := host.Links.LinkSetNsFd(l, int(s.NS)); err != nil {
		return errors.Join(fmt.Errorf("move device %s to network namespace %s: %w", device, s.Name, err), forgetLoan(s.Name), DeleteHome(s.Name))
	}
	return nil
}

func (s *Space) describeLoan(l netlink.Link) (b loan, err error) {
	a := l.Attrs()
	b = loan{Device: a.Name, MTU: a.MTU, Up: a.Flags&net.FlagUp != 0, Sysctls: map[string]string{}}
	if b.Host, err = s.Inode(); err != nil {
		return b, err
	}
	features, err := s.Features(a.Name)
	if err != nil {
		return b, err
	}
	b.Features = wanted(features)
	addresses, err := s.Links.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return b, err
	}
	for _, a := range addresses {
		if a.Scope == unix.RT_SCOPE_LINK && a.IP.IsLinkLocalUnicast() && a.IP.To4() == nil {
			continue // the kernel adds it
		}
		entry := loanAddress{Net: *a.IPNet, Label: a.Label, Flags: a.Flags &^ unix.IFA_F_TENTATIVE, Scope: a.Scope, Broadcast: a.Broadcast, ValidLft: a.ValidLft, PreferredLft: a.PreferedLft}
		if a.Peer != nil && a.Peer.String() != a.IPNet.String() {
			entry.Peer = a.Peer
		}
		b.Addresses = append(b.Addresses, entry)
	}
	routes, err := s.Links.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{LinkIndex: a.Index, Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	if err != nil {
		return b, err
	}
	for _, r := range routes {
		if r.Table == unix.RT_TABLE_LOCAL || r.Protocol == unix.RTPROT_KERNEL {
			continue // the kernel adds it
		}
		b.Routes = append(b.Routes, loanRoute{r.Dst, r.Src, r.Gw, int(r.Scope), int(r.Protocol), r.Table, r.Priority, r.MTU, r.AdvMSS, r.Congctl})
	}
	return b, eachDeviceSysctl(a.Name, func(path string) error {
		value, err := os.ReadFile(filepath.Join(sysctls, path))
		if err == nil { // some files cannot be read, such as stable_secret
			b.Sysctls[path] = strings.TrimSpace(string(value))
		}
		return nil
	})
}

const sysctls = "/proc/sys/net"

// eachDeviceSysctl visits the sysctls of a device, as paths below /proc/sys/net.
func eachDeviceSysctl(device string, visit func(path string) error) error {
	for _, family := range []string{"ipv4", "ipv6"} {
		dir := filepath.Join(family, "conf", device)
		files, err := os.ReadDir(filepath.Join(sysctls, dir))
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6
		}
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := visit(filepath.Join(dir, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b loan) save(name string) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(Home(name), 0o700); err != nil {
		return fmt.Errorf("make the home of namespace %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(Home(name), loanFile), text, 0o600); err != nil {
		return fmt.Errorf("record the device in namespace %s: %w", name, err)
	}
	return nil
}

// loanOf reads the loan of a namespace. ok is false if there is none.
func loanOf(name string) (b loan, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(Home(name), loanFile))
	if errors.Is(err, os.ErrNotExist) {
		return b, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		return b, false, fmt.Errorf("read which device is in namespace %s: %w", name, err)
	}
	return b, true, nil
}

// forgetLoan removes the record of a namespace's loan.
func forgetLoan(name string) error {
	if err := os.Remove(filepath.Join(Home(name), loanFile)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// LentElsewhere reports whether a namespace has a device of another host namespace
// than the process's. Only a process in that host namespace can return the device.
func LentElsewhere(name string) (bool, error) {
	b, ok, err := loanOf(name)
	if err != nil || !ok {
		return false, err
	}
	host, err := Open("")
	if err != nil {
		return false, err
	}
	defer host.Close()
	own, err := host.Inode()
	return own != b.Host, err
}

// giveBack returns the borrowed device of a namespace. It does nothing if the
// namespace has none.
func giveBack(name string) error {
	b, ok, err := loanOf(name)
	if err != nil || !ok {
		return err
	}
	host, err := Open("")
	if err != nil {
		return err
	}
	defer host.Close()
	own, err := host.Inode()
	if err != nil {
		return err
	}
	if own != b.Host {
		return fmt.Errorf("device %s in network namespace %s belongs to another network namespace of this machine; remove it from there", b.Device, name)
	}
	if err := b.move(name, host); err != nil {
		return fmt.Errorf("return device %s from network namespace %s: %w", b.Device, name, err)
	}
	return b.restore(host)
}

// move moves the device to the host's namespace, if it is not there already.
func (b loan) move(name string, host *Space) error {
	s, err := Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the kernel has returned the device
	}
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := s.Links.LinkByName(b.Device)
	if _, gone := err.(netlink.LinkNotFoundError); gone {
		return nil
	}
	if err != nil {
		return err
	}
	return s.Links.LinkSetNsFd(l, int(host.NS))
}

// restore gives a returned device its settings again. It continues after errors.
func (b loan) restore(host *Space) error {
	l, err := host.Link(b.Device)
	if err != nil {
		return err
	}
	var errs []error
	fail := func(what string, err error) {
		if err != nil && !errors.Is(err, unix.EEXIST) {
			errs = append(errs, fmt.Errorf("restore %s of device %s: %w", what, b.Device, err))
		}
	}
	fail("the MTU", host.Links.LinkSetMTU(l, b.MTU))
	for path, value := range b.Sysctls {
		file := filepath.Join(sysctls, path)
		now, err := os.ReadFile(file)
		if err == nil && strings.TrimSpace(string(now)) != value {
			fail("sysctl "+path, os.WriteFile(file, []byte(value), 0))
		}
	}
	fail("offloads", host.RestoreFeatures(b.Device, b.Features))
	if b.Up {
		fail("the state", host.Links.LinkSetUp(l))
	}
	for _, a := range b.Addresses {
		if a.Broadcast = a.Broadcast.To4(); a.Broadcast == nil {
			a.Broadcast = net.IPv4zero // else netlink's package computes one
		}
		fail("address "+a.Net.String(), host.Links.AddrAdd(l, &netlink.Addr{IPNet: &a.Net, Label: a.Label, Flags: a.Flags | ifaFlagNoDAD, Scope: a.Scope, Peer: a.Peer, Broadcast: a.Broadcast, ValidLft: a.ValidLft, PreferedLft: a.PreferredLft}))
	}
	for _, r := range b.Routes {
		route := &netlink.Route{
			LinkIndex: l.Attrs().Index, Dst: r.Dst, Src: r.Src, Gw: r.Gw, Scope: netlink.Scope(r.Scope), Protocol: netlink.RouteProtocol(r.Protocol),
			Table: r.Table, Priority: r.Priority, MTU: r.MTU, AdvMSS: r.AdvMSS, Congctl: r.Congctl,
		}
		fail("route "+route.String(), host.Links.RouteAdd(route))
	}
	return errors.Join(errs...)
}
