package netdev

import (
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/model"
)

// locatorProtocol is the routing protocol of the locators' routes in the kernel's tables
// (rtm_protocol of rtnetlink(7)). KeepLocator finds its routes by this number.
const locatorProtocol = 118

// KeepLocator adds the first address of the node's locator to the device lo. Other nodes
// send tests to this address. It also adds an unreachable route for the locator: packets to
// the locator that the eBPF programs leave to the kernel must not follow a default route.
// KeepLocator removes the addresses and routes that an agent added for other locators. It
// finds these locators by their routes. last is the previous locator of this agent, whose
// route may be deleted; zero: none. If the node has no locator, or the host uses a part of it
// (HostUse.Check), KeepLocator adds nothing.
func KeepLocator(s *Space, self model.Node, last netip.Prefix) error {
	lo, err := s.Links.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("locator: find device lo: %w", err)
	}
	routes, err := routes6(s)
	if err != nil && !self.Locator.IsValid() {
		return nil // a kernel without IPv6
	}
	if err != nil {
		return fmt.Errorf("locator: %w", err)
	}
	var taken error
	if self.Locator.IsValid() {
		use, err := hostUseOf(s, routes)
		if err != nil {
			taken = fmt.Errorf("locator: %w", err)
		} else {
			taken = use.Check(self.Locator)
		}
		if taken != nil {
			self.Locator = netip.Prefix{}
		}
	}
	found := keptLocators(routes)
	if last.IsValid() && last != self.Locator {
		found[last] = true
	}
	has := found[self.Locator]
	delete(found, self.Locator)
	errs := []error{taken}
	for p := range found {
		old := model.Node{Locator: p}
		if err := s.Links.AddrDel(lo, locatorAddress(old)); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.EOPNOTSUPP) { // the kernel may lack IPv6
			errs = append(errs, fmt.Errorf("locator: remove address %s from device lo: %w", old.LocatorAddress(), err))
		}
		if err := s.Links.RouteDel(locatorRoute(p)); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EOPNOTSUPP) {
			errs = append(errs, fmt.Errorf("locator: remove the route to %s: %w", p, err))
		}
	}
	if self.Locator.IsValid() {
		if !has {
			if err := s.Links.RouteReplace(locatorRoute(self.Locator)); err != nil {
				errs = append(errs, fmt.Errorf("locator: add an unreachable route for %s: %w", self.Locator, err))
			}
		}
		// Do not use AddrReplace: then the kernel reports a change even if the address exists.
		if err := s.Links.AddrAdd(lo, locatorAddress(self)); err != nil && !errors.Is(err, unix.EEXIST) {
			errs = append(errs, fmt.Errorf("locator: add address %s to device lo: %w; check that the kernel has IPv6, and that the sysctl net.ipv6.conf.lo.disable_ipv6 is 0", self.LocatorAddress(), err))
		}
	}
	return errors.Join(errs...)
}

// KeptLocators returns the locators that KeepLocator has added to the kernel, also those of an
// earlier agent.
func KeptLocators(s *Space) (map[netip.Prefix]bool, error) {
	routes, err := routes6(s)
	return keptLocators(routes), err
}

func keptLocators(routes []netlink.Route) map[netip.Prefix]bool {
	kept := map[netip.Prefix]bool{}
	for _, r := range routes {
		if r.Protocol != locatorProtocol || r.Table != unix.RT_TABLE_MAIN {
			continue
		}
		if p, ok := PrefixOf(r.Dst); ok && (p.Bits() == model.LocatorBits || p.Bits() == model.LongLocatorBits) {
			kept[p] = true
		}
	}
	return kept
}

// hasNetwork reports whether the part of an address in a locator that identifies a network is
// not 0 (datapath/bpf/translate.h).
func hasNetwork(a netip.Addr) bool {
	b := a.As16()
	return b[10] != 0 || b[11] != 0
}

func locatorRoute(locator netip.Prefix) *netlink.Route {
	return &netlink.Route{Dst: IPNet(locator), Type: unix.RTN_UNREACHABLE, Protocol: locatorProtocol, Table: unix.RT_TABLE_MAIN}
}

// locatorAddress returns the first address of a node's locator. Its preferred lifetime is 0,
// so that the kernel does not choose it as the source of other connections.
func locatorAddress(n model.Node) *netlink.Addr {
	return &netlink.Addr{IPNet: IPNet(netip.PrefixFrom(n.LocatorAddress(), 128)), Flags: unix.IFA_F_NODAD, ValidLft: math.MaxUint32}
}
