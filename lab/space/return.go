package space

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

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
	set := fmt.Sprintf("ip link set %s mtu %d", b.Device, b.MTU)
	if b.Up {
		set += " up"
	}
	commands := []string{set}
	for _, path := range slices.Sorted(maps.Keys(b.Sysctls)) {
		if value := b.Sysctls[path]; !isDefaultSysctl(path, value) {
			commands = append(commands, sysctlCommand(path, value))
		}
	}
	for _, a := range b.Addresses {
		commands = append(commands, addressCommand(a, b.Device))
	}
	return fmt.Errorf("device %s (MAC address %s) vanished from network namespace %s; if it exists again, restore its settings by hand:\n\t%s",
		b.Device, b.MAC, name, strings.Join(commands, "\n\t"))
}

func sysctlCommand(path, value string) string {
	return fmt.Sprintf("sysctl -w net/%s='%s'", path, value)
}

// restore gives a returned device its settings again. It continues after errors.
func (b loan) restore(host *Space, l netlink.Link) error {
	var errs []error
	fail := func(err error, command string) {
		if err != nil {
			errs = append(errs, fmt.Errorf("restore a setting of device %s: %w; restore it by hand: `%s`", b.Device, err, command))
		}
	}
	if !bytes.Equal(l.Attrs().HardwareAddr, b.MAC) {
		fail(host.Links.LinkSetHardwareAddr(l, b.MAC), fmt.Sprintf("ip link set %s address %s", b.Device, b.MAC))
	}
	fail(host.Links.LinkSetMTU(l, b.MTU), fmt.Sprintf("ip link set %s mtu %d", b.Device, b.MTU))
	failed := writeDeviceSysctls(b.Sysctls)
	for _, path := range slices.Sorted(maps.Keys(failed)) {
		fail(failed[path], sysctlCommand(path, b.Sysctls[path]))
	}
	if err := host.RestoreFeatures(b.Device, b.Features); err != nil {
		errs = append(errs, fmt.Errorf("restore the offloads of device %s: %w", b.Device, err))
	}
	if b.Up {
		fail(host.Links.LinkSetUp(l), fmt.Sprintf("ip link set %s up", b.Device))
	}
	for _, a := range b.Addresses {
		fail(host.addAddress(l, a), addressCommand(a, b.Device))
	}
	return errors.Join(errs...)
}
