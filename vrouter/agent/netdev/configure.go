package netdev

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/model"
)

// HostMTU is the MTU of the node's end of a pair: the maximum of a veth device. The program
// on this device answers a packet that is too large with an ICMP error. With a smaller MTU
// the kernel would drop the packet without an error before the program runs.
const HostMTU = 65535

// Configure configures both devices of a connected port: MTU and state, and in the
// workload's namespace the MAC address, addresses and default routes. It changes only
// differences. If the agent did not create the device, Configure only sets it up and sets
// its bandwidth limits.
func (w *Wire) Configure(p model.Port, d *Device, o DeviceConfig, mtu int) error {
	if p.Attach.Device != "" {
		if err := w.up(p, w.own, d.Link); err != nil {
			return err
		}
		return w.limit(p, w.own, d.Link, p.Bandwidth.Ingress)
	}
	space, err := w.namespaceOf(p)
	if err != nil {
		return err
	}
	inside, err := w.inside(p, d, space)
	if err != nil {
		return err
	}
	fresh := inside.Attrs().Flags&net.FlagUp == 0
	steps := []func() error{
		func() error { return w.mtu(p, w.own, d.Link, HostMTU) },
		func() error { return w.mtu(p, space, inside, mtu) },
		func() error { return w.superpackets(p, w.own, d.Link) },
		func() error { return w.superpackets(p, space, inside) },
		func() error { return w.mac(p, space, inside, o.mac) },
		func() error { return deviceSysctls(p, space, inside.Attrs().Name, o, fresh) },
		func() error { return w.limit(p, w.own, d.Link, p.Bandwidth.Ingress) },
		func() error { return w.limit(p, space, inside, p.Bandwidth.Egress) },
		func() error { return w.up(p, w.own, d.Link) },
		func() error { return w.up(p, space, inside) },
		func() error { return w.addresses(p, space, inside, o) },
		func() error { return w.routes(p, space, inside, o) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// inside finds the workload's end of a pair. If it was renamed, inside restores its name.
// The kernel renames only a device that is down.
func (w *Wire) inside(p model.Port, d *Device, space *nsCache) (netlink.Link, error) {
	index := d.Link.Attrs().ParentIndex
	l, err := space.devices.Index(index)
	if err == nil && l == nil {
		err = unix.ENODEV
	}
	if err != nil {
		return nil, fmt.Errorf("find the other end of %s in %s: %w", d.Link.Attrs().Name, describeNamespace(p), err)
	}
	want := InterfaceOf(p)
	if l.Attrs().Name == want {
		return l, nil
	}
	was := l.Attrs().Name
	if err := errors.Join(space.Links.LinkSetDown(l), space.Links.LinkSetName(l, want)); err != nil {
		return nil, fmt.Errorf("rename device %s in %s to %s: %w", was, describeNamespace(p), want, err)
	}
	w.changed(p.Name, "device "+was+" renamed to "+want)
	if l, err = space.devices.Renew(index); err == nil && l == nil {
		err = unix.ENODEV
	}
	if err != nil {
		return nil, fmt.Errorf("find device %s in %s: %w", want, describeNamespace(p), err)
	}
	return l, nil
}

func (w *Wire) mtu(p model.Port, s *nsCache, l netlink.Link, mtu int) error {
	if mtu == 0 || l.Attrs().MTU == mtu {
		return nil
	}
	if err := s.Links.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("set the MTU of device %s to %d: %w", l.Attrs().Name, mtu, err)
	}
	w.changed(p.Name, fmt.Sprintf("MTU of %s set from %d to %d", l.Attrs().Name, l.Attrs().MTU, mtu))
	l.Attrs().MTU = mtu
	return nil
}

func (w *Wire) superpackets(p model.Port, s *nsCache, l netlink.Link) error {
	changed, err := s.SetSuperpackets(l, w.Big)
	if changed {
		w.changed(p.Name, fmt.Sprintf("maximum size of superpackets of %s set to %d", l.Attrs().Name, l.Attrs().GSOMaxSize))
	}
	return err
}

func (w *Wire) mac(p model.Port, s *nsCache, l netlink.Link, mac model.MAC) error {
	if bytes.Equal(l.Attrs().HardwareAddr, mac[:]) {
		return nil
	}
	if err := s.Links.LinkSetHardwareAddr(l, mac[:]); err != nil {
		return fmt.Errorf("set the MAC of device %s to %s: %w", l.Attrs().Name, mac, err)
	}
	w.changed(p.Name, fmt.Sprintf("MAC of %s set from %s to %s", l.Attrs().Name, l.Attrs().HardwareAddr, mac))
	return nil
}

func (w *Wire) up(p model.Port, s *nsCache, l netlink.Link) error {
	if l.Attrs().Flags&net.FlagUp != 0 {
		return nil
	}
	if err := s.Links.LinkSetUp(l); err != nil {
		return fmt.Errorf("set device %s up: %w", l.Attrs().Name, err)
	}
	l.Attrs().Flags |= net.FlagUp
	w.changed(p.Name, "device "+l.Attrs().Name+" set up")
	return nil
}

// ignoreRouters are IPv6 sysctls of a device: it accepts no address, route or next
// hop from router advertisements and redirects.
var ignoreRouters = []Setting{{"accept_ra", "0"}, {"autoconf", "0"}, {"accept_redirects", "0"}}

// deviceSysctls sets the sysctls of a workload's device before the device is up.
// Duplicate address detection is off, because the overlay allocates each address
// once. A port that connects the node itself gets its sysctls in every pass. Other
// workloads may change theirs later: they get them only on a fresh device.
func deviceSysctls(p model.Port, space *nsCache, name string, o DeviceConfig, fresh bool) error {
	if p.Attach.Host {
		// On this device, the node answers ARP requests only for the port's addresses,
		// and uses only these as the sender in its ARP requests. Its redirects would name another
		// workload as the router.
		err := space.Sysctls("ipv4", name, Setting{"arp_ignore", "1"}, Setting{"arp_announce", "2"}, Setting{"accept_redirects", "0"}, Setting{"send_redirects", "0"})
		if err := errors.Join(err, space.Sysctls("ipv6", name, ignoreRouters...)); err != nil {
			return err
		}
	}
	if !fresh {
		return nil
	}
	settings := []Setting{{"accept_dad", "0"}, {"dad_transmits", "0"}}
	if !p.Attach.AcceptRA {
		settings = append(settings, ignoreRouters...)
	}
	if slices.ContainsFunc(o.Addresses, func(a netip.Prefix) bool { return a.Addr().Is6() }) {
		settings = append(settings, Setting{"disable_ipv6", "0"})
	}
	return space.Sysctls("ipv6", name, settings...)
}

func (w *Wire) addresses(p model.Port, space *nsCache, l netlink.Link, o DeviceConfig) error {
	var have []netip.Prefix // a new device has at most link-local addresses
	if !w.made[p.Name] {
		var err error
		if have, err = space.addressesOf(l); err != nil {
			return err
		}
	}
	add, remove := o.addressChanges(have)
	for _, a := range remove {
		err := space.Links.AddrDel(l, &netlink.Addr{IPNet: IPNet(a)})
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) { // the kernel removed it together with another address
			return fmt.Errorf("remove address %s from device %s: %w", a, l.Attrs().Name, err)
		}
		w.changed(p.Name, "address "+a.String()+" removed")
	}
	for _, a := range add {
		address := &netlink.Addr{IPNet: IPNet(a)}
		if a.Addr().Is6() {
			address.Flags = unix.IFA_F_NODAD
		}
		err := space.Links.AddrAdd(l, address)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add address %s to device %s: %w", a, l.Attrs().Name, err)
		}
		w.changed(p.Name, "address "+a.String()+" set")
	}
	return nil
}

// routes adds default routes to the workload's namespace. It keeps an existing default
// route, and adds none if the workload is the node.
func (w *Wire) routes(p model.Port, space *nsCache, l netlink.Link, o DeviceConfig) error {
	if p.Attach.Host {
		return nil
	}
	for _, gateway := range o.Gateways {
		family, everything := netlink.FAMILY_V6, netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		if gateway.Is4() {
			family, everything = netlink.FAMILY_V4, netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		}
		has, err := space.hasDefault(family)
		if err != nil {
			return err
		}
		if has {
			continue
		}
		err = space.Links.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: IPNet(everything), Gw: gateway.AsSlice()})
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add a default route via %s to the workload's namespace: %w", gateway, err)
		}
		space.hasNow(family, true)
		w.changed(p.Name, "default route via "+gateway.String()+" set")
	}
	return nil
}

// HasDefault reports whether routes contain a default route. It ignores an unreachable
// default route: the kernel adds it if there is no other default route.
func HasDefault(all []netlink.Route) bool {
	for _, r := range all {
		if r.Type != unix.RTN_UNICAST {
			continue
		}
		if r.Dst == nil {
			return true
		}
		if bits, _ := r.Dst.Mask.Size(); bits == 0 {
			return true
		}
	}
	return false
}

// IPNet converts a prefix, and keeps its host bits.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// PrefixOf converts a network, and keeps its host bits. It returns false if the network is
// not valid.
func PrefixOf(n *net.IPNet) (netip.Prefix, bool) {
	a, ok := netip.AddrFromSlice(n.IP)
	if !ok {
		return netip.Prefix{}, false
	}
	bits, size := n.Mask.Size()
	if size == 32 {
		a = a.Unmap()
	}
	return netip.PrefixFrom(a, bits), true
}
