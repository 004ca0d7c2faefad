package netdev

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// Devices is a cache of the devices of a network namespace. Only this package may change the
// devices that its methods return.
type Devices struct {
	space   *Space
	listed  bool         // all devices were listed since Expire
	fresh   map[int]bool // devices that were looked up since Expire
	byName  map[string]netlink.Link
	byIndex map[int]netlink.Link
}

// NewDevices returns the devices of a namespace. None is looked up yet.
func NewDevices(s *Space) *Devices {
	return &Devices{space: s, fresh: map[int]bool{}, byName: map[string]netlink.Link{}, byIndex: map[int]netlink.Link{}}
}

// List lists all devices.
func (d *Devices) List() error {
	all, err := Links(d.space.Links)
	if err != nil {
		return err
	}
	clear(d.byName)
	clear(d.byIndex)
	for _, l := range all {
		d.put(l)
	}
	d.listed = true
	return nil
}

// Expire marks all cached devices as old: Name and Index then ask the kernel again.
func (d *Devices) Expire() {
	d.listed = false
	clear(d.fresh)
}

// Known returns the cached devices by name. They may have changed in the kernel.
func (d *Devices) Known() map[string]netlink.Link { return d.byName }

// Has reports whether a device is in the cache. The kernel may have deleted it.
func (d *Devices) Has(index int) bool { return d.byIndex[index] != nil }

// Forget removes a device that was deleted.
func (d *Devices) Forget(index int) { d.forget(d.byIndex[index]) }

// Name finds a device by its name; nil: it does not exist. It finds no device by an alternative
// name (altname in ip-link(8)).
func (d *Devices) Name(name string) (netlink.Link, error) {
	if l := d.byName[name]; d.listed || l != nil && d.fresh[l.Attrs().Index] {
		return l, nil
	}
	l, err := d.space.Link(name)
	if err != nil {
		return nil, err
	}
	if l == nil || l.Attrs().Name != name {
		d.forget(d.byName[name])
		return nil, nil
	}
	d.put(l)
	return l, nil
}

// Index finds a device by ifindex; nil: it does not exist.
func (d *Devices) Index(index int) (netlink.Link, error) {
	if d.listed || d.fresh[index] {
		return d.byIndex[index], nil
	}
	return d.Renew(index)
}

// Renew asks the kernel for a device by its ifindex, and updates the cache; nil: the device does
// not exist.
func (d *Devices) Renew(index int) (netlink.Link, error) {
	l, err := d.space.Links.LinkByIndex(index)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		d.forget(d.byIndex[index])
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find device %d: %w", index, err)
	}
	d.put(l)
	return l, nil
}

func (d *Devices) put(l netlink.Link) {
	d.forget(d.byIndex[l.Attrs().Index]) // it may have had another name
	d.forget(d.byName[l.Attrs().Name])   // it may have had another number
	d.byName[l.Attrs().Name], d.byIndex[l.Attrs().Index], d.fresh[l.Attrs().Index] = l, l, true
}

// forget removes a device, which can be nil.
func (d *Devices) forget(l netlink.Link) {
	if l != nil {
		delete(d.fresh, l.Attrs().Index)
		delete(d.byName, l.Attrs().Name)
		delete(d.byIndex, l.Attrs().Index)
	}
}
