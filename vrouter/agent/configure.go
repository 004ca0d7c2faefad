package agent

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

// hostMTU is the node's end's: as much as a veth takes. Its program knows what
// fits and answers what does not with an ICMP error; were the device's MTU the
// workload's, the kernel would drop that in silence before the program saw it.
const hostMTU = 65535

// configure configures both devices of a connected port: MTU and state, and in the
// workload's namespace the MAC address, addresses and default routes. It changes only
// what differs. If the agent has not created the device, configure only sets it up and
// limits it.
func (w *wire) configure(p model.Port, d *device, o deviceConfig, mtu int) error {
	if p.Attach.Device != "" {
		if err := w.up(p, w.own, d.link); err != nil {
			return err
		}
		return w.limit(p, w.own, d.link, p.Bandwidth.Ingress)
	}
	there, err := w.namespaceOf(p)
	if err != nil {
		return err
	}
	inside, err := w.inside(p, d, there)
	if err != nil {
		return err
	}
	fresh := inside.Attrs().Flags&net.FlagUp == 0
	steps := []func() error{
		func() error { return w.mtu(p, w.own, d.link, hostMTU) },
		func() error { return w.mtu(p, there, inside, mtu) },
		func() error { return w.mac(p, there, inside, o.mac) },
		func() error { return deviceSysctls(p, there, inside.Attrs().Name, o, fresh) },
		func() error { return w.limit(p, w.own, d.link, p.Bandwidth.Ingress) },
		func() error { return w.limit(p, there, inside, p.Bandwidth.Egress) },
		func() error { return w.up(p, w.own, d.link) },
		func() error { return w.up(p, there, inside) },
		func() error { return w.addresses(p, there, inside, o) },
		func() error { return w.routes(p, there, inside, o) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// inside finds the workload's end of a pair and gives it its name back. Only a
// device that is down can be renamed.
func (w *wire) inside(p model.Port, d *device, there *nsCache) (netlink.Link, error) {
	index := d.link.Attrs().ParentIndex
	l, err := there.device(index)
	if err == nil && l == nil {
		err = unix.ENODEV
	}
	if err != nil {
		return nil, fmt.Errorf("find the other end of %s in %s: %w", d.link.Attrs().Name, place(p), err)
	}
	want := interfaceOf(p)
	if l.Attrs().Name == want {
		return l, nil
	}
	was := l.Attrs().Name
	if err := errors.Join(there.links.LinkSetDown(l), there.links.LinkSetName(l, want)); err != nil {
		return nil, fmt.Errorf("rename device %s in %s to %s: %w", was, place(p), want, err)
	}
	w.changed(p.Name, "device "+was+" renamed to "+want)
	if err := there.renew(index); err != nil {
		return nil, fmt.Errorf("find device %s in %s: %w", want, place(p), err)
	}
	return there.device(index)
}

func (w *wire) mtu(p model.Port, s *nsCache, l netlink.Link, mtu int) error {
	if mtu == 0 || l.Attrs().MTU == mtu {
		return nil
	}
	if err := s.links.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("set the MTU of device %s to %d: %w", l.Attrs().Name, mtu, err)
	}
	w.changed(p.Name, fmt.Sprintf("MTU of %s set from %d to %d", l.Attrs().Name, l.Attrs().MTU, mtu))
	l.Attrs().MTU = mtu
	return nil
}

func (w *wire) mac(p model.Port, s *nsCache, l netlink.Link, mac model.MAC) error {
	if bytes.Equal(l.Attrs().HardwareAddr, mac[:]) {
		return nil
	}
	if err := s.links.LinkSetHardwareAddr(l, mac[:]); err != nil {
		return fmt.Errorf("set the MAC of device %s to %s: %w", l.Attrs().Name, mac, err)
	}
	w.changed(p.Name, fmt.Sprintf("MAC of %s set from %s to %s", l.Attrs().Name, l.Attrs().HardwareAddr, mac))
	return nil
}

func (w *wire) up(p model.Port, s *nsCache, l netlink.Link) error {
	if l.Attrs().Flags&net.FlagUp != 0 {
		return nil
	}
	if err := s.links.LinkSetUp(l); err != nil {
		return fmt.Errorf("set device %s up: %w", l.Attrs().Name, err)
	}
	w.changed(p.Name, "device "+l.Attrs().Name+" set up")
	return nil
}

// ignoreRouters are IPv6 sysctls of a device: it accepts no address, route or next
// hop from router advertisements and redirects.
var ignoreRouters = []setting{{"accept_ra", "0"}, {"autoconf", "0"}, {"accept_redirects", "0"}}

// deviceSysctls sets the sysctls of a workload's device before the device is up.
// Duplicate address detection is off, because the overlay allocates each address
// once. A port that connects the node itself gets its sysctls in every pass. Other
// workloads may change theirs later: they get them only on a fresh device.
func deviceSysctls(p model.Port, there *nsCache, name string, o deviceConfig, fresh bool) error {
	if p.Attach.Host {
		// On this device, the node answers ARP requests only for the port's addresses,
		// and uses only these as the sender in its ARP requests.
		err := there.sysctls("ipv4", name, setting{"arp_ignore", "1"}, setting{"arp_announce", "2"}, setting{"accept_redirects", "0"})
		if err := errors.Join(err, there.sysctls("ipv6", name, ignoreRouters...)); err != nil {
			return err
		}
	}
	if !fresh {
		return nil
	}
	settings := []setting{{"accept_dad", "0"}, {"dad_transmits", "0"}}
	if !p.Attach.AcceptRA {
		settings = append(settings, ignoreRouters...)
	}
	if slices.ContainsFunc(o.addresses, func(a netip.Prefix) bool { return a.Addr().Is6() }) {
		settings = append(settings, setting{"disable_ipv6", "0"})
	}
	return there.sysctls("ipv6", name, settings...)
}

func (w *wire) addresses(p model.Port, there *nsCache, l netlink.Link, o deviceConfig) error {
	have, err := there.addressesOf(l)
	if err != nil {
		return err
	}
	add, remove := o.addressChanges(have)
	for _, a := range remove {
		err := there.links.AddrDel(l, &netlink.Addr{IPNet: ipNet(a)})
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) { // went with another one
			return fmt.Errorf("remove address %s from device %s: %w", a, l.Attrs().Name, err)
		}
		w.changed(p.Name, "address "+a.String()+" removed")
	}
	for _, a := range add {
		address := &netlink.Addr{IPNet: ipNet(a)}
		if a.Addr().Is6() {
			address.Flags = unix.IFA_F_NODAD
		}
		err := there.links.AddrAdd(l, address)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("give device %s the address %s: %w", l.Attrs().Name, a, err)
		}
		w.changed(p.Name, "address "+a.String()+" set")
	}
	return nil
}

// routes gives the workload default routes where its namespace has none: one
// that is there is somebody's choice. The node has its own.
func (w *wire) routes(p model.Port, there *nsCache, l netlink.Link, o deviceConfig) error {
	if p.Attach.Host {
		return nil
	}
	for _, gateway := range o.gateways {
		family, everything := netlink.FAMILY_V6, netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		if gateway.Is4() {
			family, everything = netlink.FAMILY_V4, netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		}
		has, err := there.hasDefault(family)
		if err != nil {
			return err
		}
		if has {
			continue
		}
		err = there.links.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(everything), Gw: gateway.AsSlice()})
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("give the workload its default route via %s: %w", gateway, err)
		}
		there.hasNow(family, true)
		w.changed(p.Name, "default route via "+gateway.String()+" set")
	}
	return nil
}

// hasDefault tells whether a default route is among a namespace's. An
// unreachable one is what the kernel puts where there is none.
func hasDefault(all []netlink.Route) bool {
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

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
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
