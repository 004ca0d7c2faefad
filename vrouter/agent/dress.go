package agent

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/model"
)

// hostMTU is the node's end's: as much as a veth takes. Its program knows what
// fits and answers what does not with an ICMP error; were the device's MTU the
// workload's, the kernel would drop that in silence before the program saw it.
const hostMTU = 65535

// dress makes a plugged port's devices what they shall be: MTU, and in the
// workload's namespace MAC, addresses, default routes; both ends up. What is
// right already is left alone. A device that somebody else made is only set up.
func (w *wire) dress(p model.Port, d *device, o outfit, mtu int) error {
	if p.Attach.Device != "" {
		return w.up(p, w.space, d.link)
	}
	there, err := w.workspace(p.Attach.Netns)
	if err != nil {
		return err
	}
	inside, err := w.inside(p, d, there)
	if err != nil {
		return err
	}
	fresh := inside.Attrs().Flags&net.FlagUp == 0
	steps := []func() error{
		func() error { return w.mtu(p, w.space, d.link, hostMTU) },
		func() error { return w.mtu(p, there, inside, mtu) },
		func() error { return w.mac(p, there, inside, o.mac) },
		func() error { return quiet(there, inside.Attrs().Name, o, fresh) },
		func() error { return w.up(p, w.space, d.link) },
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
func (w *wire) inside(p model.Port, d *device, there *space) (netlink.Link, error) {
	l, err := there.links.LinkByIndex(d.link.Attrs().ParentIndex)
	if err != nil {
		return nil, fmt.Errorf("find the other end of %s in %s: %w", d.link.Attrs().Name, p.Attach.Netns, err)
	}
	want := interfaceOf(p)
	if l.Attrs().Name == want {
		return l, nil
	}
	was := l.Attrs().Name
	if err := errors.Join(there.links.LinkSetDown(l), there.links.LinkSetName(l, want)); err != nil {
		return nil, fmt.Errorf("rename device %s in %s to %s: %w", was, p.Attach.Netns, want, err)
	}
	w.changed(p.Name, "device "+was+" renamed to "+want)
	return there.links.LinkByIndex(l.Attrs().Index)
}

func (w *wire) mtu(p model.Port, s *space, l netlink.Link, mtu int) error {
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

func (w *wire) mac(p model.Port, s *space, l netlink.Link, mac model.MAC) error {
	if bytes.Equal(l.Attrs().HardwareAddr, mac[:]) {
		return nil
	}
	if err := s.links.LinkSetHardwareAddr(l, mac[:]); err != nil {
		return fmt.Errorf("set the MAC of device %s to %s: %w", l.Attrs().Name, mac, err)
	}
	w.changed(p.Name, fmt.Sprintf("MAC of %s set from %s to %s", l.Attrs().Name, l.Attrs().HardwareAddr, mac))
	return nil
}

func (w *wire) up(p model.Port, s *space, l netlink.Link) error {
	if l.Attrs().Flags&net.FlagUp != 0 {
		return nil
	}
	if err := s.links.LinkSetUp(l); err != nil {
		return fmt.Errorf("set device %s up: %w", l.Attrs().Name, err)
	}
	w.changed(p.Name, "device "+l.Attrs().Name+" set up")
	return nil
}

// quiet readies IPv6 before a workload's device comes up: its addresses are
// given out once, so nothing waits for duplicate address detection.
func quiet(there *space, name string, o outfit, fresh bool) error {
	if !fresh {
		return nil
	}
	settings := [][2]string{{"accept_dad", "0"}, {"dad_transmits", "0"}}
	for _, a := range o.addresses {
		if a.Addr().Is6() {
			settings = append(settings, [2]string{"disable_ipv6", "0"})
			break
		}
	}
	for _, s := range settings {
		if err := there.sysctl("ipv6", name, s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

func (w *wire) addresses(p model.Port, there *space, l netlink.Link, o outfit) error {
	list, err := there.links.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the addresses of device %s: %w", l.Attrs().Name, err)
	}
	var have []netip.Prefix
	for _, a := range list {
		if prefix, ok := prefixOf(a.IPNet); ok {
			have = append(have, prefix)
		}
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
// that is there is somebody's choice.
func (w *wire) routes(p model.Port, there *space, l netlink.Link, o outfit) error {
	for _, gateway := range o.gateways {
		family, everything := netlink.FAMILY_V6, netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		if gateway.Is4() {
			family, everything = netlink.FAMILY_V4, netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		}
		all, err := listRoutes(there.links, family)
		if err != nil {
			return err
		}
		if hasDefault(all) {
			continue
		}
		err = there.links.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(everything), Gw: gateway.AsSlice()})
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("give the workload its default route via %s: %w", gateway, err)
		}
		w.changed(p.Name, "default route via "+gateway.String()+" set")
	}
	return nil
}

func listRoutes(h *netlink.Handle, family int) ([]netlink.Route, error) {
	for try := 0; ; try++ {
		all, err := h.RouteList(nil, family)
		if err == nil {
			return all, nil
		}
		if !errors.Is(err, netlink.ErrDumpInterrupted) || try == 10 {
			return nil, fmt.Errorf("list routes: %w", err)
		}
	}
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
