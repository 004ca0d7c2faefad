package netdev

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/model"
)

// locatorProtocol marks the routes of locators in the kernel's tables (rtm_protocol of
// rtnetlink(7)).
const locatorProtocol = 118

// KeepLocator gives the node an address in its locator, on the device lo, and removes the
// addresses of other locators that an agent added. Other nodes test this address. Packets
// to other addresses of the locator that the programs leave to the kernel must not follow
// a default route, so an unreachable route has the whole locator. A node without a locator
// gets none of both.
func KeepLocator(s *Space, self model.Node) error {
	lo, err := s.Links.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("locator: find device lo: %w", err)
	}
	filter := &netlink.Route{Protocol: locatorProtocol, Table: unix.RT_TABLE_MAIN}
	routes, err := s.Links.RouteListFiltered(netlink.FAMILY_V6, filter, netlink.RT_FILTER_PROTOCOL|netlink.RT_FILTER_TABLE)
	if err != nil && !self.Locator.IsValid() {
		return nil // a kernel without IPv6
	}
	if err != nil {
		return fmt.Errorf("locator: list routes: %w", err)
	}
	has := false
	var errs []error
	for _, r := range routes {
		p, ok := PrefixOf(r.Dst)
		if !ok || p.Bits() != model.LocatorBits {
			continue
		}
		if p == self.Locator {
			has = true
			continue
		}
		old := model.Node{Locator: p}
		if err := s.Links.AddrDel(lo, locatorAddress(old)); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			errs = append(errs, fmt.Errorf("locator: remove address %s from device lo: %w", old.LocatorAddress(), err))
		}
		if err := s.Links.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("locator: remove the route of %s: %w", p, err))
		}
	}
	if self.Locator.IsValid() {
		if !has {
			errs = append(errs, addLocatorRoute(s, self.Locator))
		}
		// An address that exists is not added again: the kernel would report a change.
		if err := s.Links.AddrAdd(lo, locatorAddress(self)); err != nil && !errors.Is(err, unix.EEXIST) {
			errs = append(errs, fmt.Errorf("locator: add address %s to device lo: %w; is IPv6 turned off (sysctl net.ipv6.conf.lo.disable_ipv6)?", self.LocatorAddress(), err))
		}
	}
	return errors.Join(errs...)
}

func addLocatorRoute(s *Space, locator netip.Prefix) error {
	dst := &net.IPNet{IP: locator.Addr().AsSlice(), Mask: net.CIDRMask(locator.Bits(), 128)}
	if err := s.Links.RouteReplace(&netlink.Route{Dst: dst, Type: unix.RTN_UNREACHABLE, Protocol: locatorProtocol, Table: unix.RT_TABLE_MAIN}); err != nil {
		return fmt.Errorf("locator: add an unreachable route for %s: %w", locator, err)
	}
	return nil
}

// locatorAddress returns the address of a node in its locator. Its preferred lifetime is 0:
// the node's own connections must not use it.
func locatorAddress(n model.Node) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: n.LocatorAddress().AsSlice(), Mask: net.CIDRMask(128, 128)}, Flags: unix.IFA_F_NODAD, ValidLft: math.MaxUint32}
}
