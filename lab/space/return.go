package space

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// giveBack returns the borrowed device of a namespace to the host. It does nothing if the namespace
// has none. If err is set, the device is still in the namespace. lost is the error about settings
// that could not be restored, with the commands for them. A second call would not restore them.
func giveBack(name string) (lost, err error) {
	b, ok, err := loanOf(name)
	if err != nil || !ok {
		return nil, err
	}
	host, err := Open("")
	if err != nil {
		return nil, err
	}
	defer host.Close()
	own, err := host.Inode()
	if err != nil {
		return nil, err
	}
	if own != b.Host {
		return nil, fmt.Errorf("device %s in network namespace %s belongs to another network namespace of this machine; remove it from there", b.Device, name)
	}
	moved, err := b.move(name, host)
	if err != nil {
		return nil, fmt.Errorf("return device %s from network namespace %s: %w", b.Device, name, err)
	}
	l, err := host.Links.LinkByName(b.Device)
	another := err == nil && !moved && !bytes.Equal(l.Attrs().HardwareAddr, b.MAC)
	if _, gone := err.(netlink.LinkNotFoundError); gone || another {
		return b.vanished(name), nil
	}
	if err != nil {
		return nil, fmt.Errorf("find device %s after its return from network namespace %s: %w", b.Device, name, err)
	}
	return b.restore(host, l), nil
}

// move moves the device to the host's namespace. It returns false if the device has left the
// namespace name already.
func (b loan) move(name string, host *Space) (bool, error) {
	s, err := Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // the kernel has returned the device
	}
	if err != nil {
		return false, err
	}
	defer s.Close()
	l, err := s.Links.LinkByName(b.Device)
	if _, gone := err.(netlink.LinkNotFoundError); gone {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = s.Links.LinkSetNsFd(l, int(host.NS))
	if errors.Is(err, unix.EEXIST) {
		return false, fmt.Errorf("the machine has another device of this name; rename the other one (`ip link set %s name NEW`), then run `windtunnel lab clean --testbed FILE`", b.Device)
	}
	return err == nil, err
}

// vanished is the error about a device that no longer exists.
func (b loan) vanished(name string) error {
	text := fmt.Sprintf("device %s (MAC address %s) vanished from network namespace %s; if it exists again, restore its settings by hand:", b.Device, b.MAC, name)
	for _, s := range b.settings(nil, nil) {
		text += "\n\t" + s.command
	}
	return errors.New(text)
}

// restore gives a returned device its settings again. It continues after errors.
func (b loan) restore(host *Space, l netlink.Link) error {
	var errs []error
	if err := host.RestoreFeatures(b.Device, b.Features); err != nil {
		errs = append(errs, fmt.Errorf("restore the offloads of device %s: %w", b.Device, err))
	}
	for _, s := range b.settings(host, l) {
		if err := s.set(); err != nil {
			errs = append(errs, fmt.Errorf("restore a setting of device %s: %w; restore it by hand: `%s`", b.Device, err, s.command))
		}
	}
	return errors.Join(errs...)
}

// setting is a setting of a device that the kernel drops when the device changes its namespace.
type setting struct {
	set     func() error
	command string // sets it by hand
}

// settings returns the settings of a device l of the host, in their order. A device that was deleted
// also loses its MTU.
func (b loan) settings(host *Space, l netlink.Link) []setting {
	list := []setting{{func() error { return host.Links.LinkSetMTU(l, b.MTU) }, fmt.Sprintf("ip link set %s mtu %d", b.Device, b.MTU)}}
	paths := slices.Sorted(maps.Keys(b.Sysctls))
	for _, path := range slices.Backward(paths) { // stable_secret before addr_gen_mode, which it changes
		list = append(list, setting{func() error { return writeSysctl(path, b.Sysctls[path]) }, fmt.Sprintf("sysctl -w net/%s='%s'", path, b.Sysctls[path])})
	}
	if b.Up {
		list = append(list, setting{func() error { return host.Links.LinkSetUp(l) }, fmt.Sprintf("ip link set %s up", b.Device)})
	}
	for _, a := range b.Addresses {
		list = append(list, setting{func() error { return host.addAddress(l, a) }, addressCommand(a, b.Device)})
	}
	return list
}
