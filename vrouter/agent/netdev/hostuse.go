package netdev

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// HostUse has the IPv6 prefixes and addresses that a host uses for its links, its routes and its
// neighbours. A locator must not contain them.
type HostUse struct {
	space *Space
	uses  map[netip.Prefix]use
	own   map[netip.Addr]bool // addresses of the host
}

// use is the use of a prefix or an address by the host.
type use struct {
	what    string
	ifindex int
}

// HostUseOf lists the prefixes and addresses that a host uses.
func HostUseOf(s *Space) (*HostUse, error) {
	routes, err := routes6(s)
	if err != nil {
		return nil, err
	}
	return hostUseOf(s, routes)
}

func hostUseOf(s *Space, routes []netlink.Route) (*HostUse, error) {
	u := &HostUse{s, map[netip.Prefix]use{}, map[netip.Addr]bool{}}
	addresses, err := Addresses6(s)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		u.own[a] = true
	}
	neighbours, err := list("IPv6 neighbours", func() ([]netlink.Neigh, error) { return s.Links.NeighList(0, netlink.FAMILY_V6) })
	if err != nil {
		return nil, err
	}
	// One solicitation with a false source adds a STALE entry. It must not refuse a locator.
	const answered = netlink.NUD_REACHABLE | netlink.NUD_PERMANENT
	for _, n := range neighbours {
		if ip, ok := netip.AddrFromSlice(n.IP); ok && n.State&answered != 0 {
			u.uses[netip.PrefixFrom(ip, ip.BitLen())] = use{"the address of a neighbour", n.LinkIndex}
		}
	}
	for _, r := range routes {
		u.addRoute(r)
	}
	return u, nil
}

// addRoute adds the next hops of a unicast route. A route without a next hop has the prefix of a
// link, unless it leads to an address of the host.
func (u *HostUse) addRoute(r netlink.Route) {
	if r.Type != unix.RTN_UNICAST || r.Dst == nil {
		return
	}
	hops := r.MultiPath
	if len(hops) == 0 {
		hops = []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw}}
	}
	for _, hop := range hops {
		if gateway, ok := netip.AddrFromSlice(hop.Gw); ok {
			u.uses[netip.PrefixFrom(gateway, gateway.BitLen())] = use{"the next hop of a route", hop.LinkIndex}
			continue
		}
		switch p, ok := PrefixOf(r.Dst); {
		case !ok, p.IsSingleIP() && u.own[p.Addr()]:
		case p.IsSingleIP():
			u.uses[p] = use{"an address on a link", hop.LinkIndex}
		default:
			u.uses[p] = use{"the prefix of a link", hop.LinkIndex}
		}
	}
}

// Check refuses a locator if the host or other hosts on its links have addresses in it: the
// unreachable route of the locator would hide these hosts, and the first address of the locator
// may be a router's. A locator may be a part of the prefix of a link, as clouds assign them, but
// not the first part: there, all routers of the link have an address (RFC 4291, section 2.6.1),
// and operators choose addresses. Check also refuses addresses of the host that the eBPF programs
// would take for a workload's: then the host would not get the packets to this address.
func (u *HostUse) Check(locator netip.Prefix) error {
	const remedy = "write a prefix that the underlay routes to this node, and that no link uses"
	var found netip.Prefix // the first of the shortest, so that the error stays the same
	for p := range u.uses {
		if locator.Contains(p.Addr()) && (!found.IsValid() || p.Bits() < found.Bits() || p.Bits() == found.Bits() && p.Addr().Less(found.Addr())) {
			found = p
		}
	}
	if found.IsValid() {
		used, what := u.uses[found], found.String()
		switch {
		case found.IsSingleIP():
			what = found.Addr().String()
		case found.Bits() < locator.Bits():
			what = "the first addresses of " + what
		}
		return fmt.Errorf("locator: %s contains %s, %s, on device %s; %s", locator, what, used.what, u.device(used.ifindex), remedy)
	}
	for a := range u.own {
		if locator.Contains(a) && hasNetwork(a) {
			return fmt.Errorf("locator: %s contains the address %s of this host, and packets to it would count as packets to a workload; %s", locator, a, remedy)
		}
	}
	return nil
}

func (u *HostUse) device(index int) string {
	l, err := u.space.Links.LinkByIndex(index)
	if err != nil {
		return fmt.Sprint(index)
	}
	return l.Attrs().Name
}

// Addresses6 lists the host's IPv6 addresses.
func Addresses6(s *Space) (all []netip.Addr, err error) {
	addresses, err := list("IPv6 addresses", func() ([]netlink.Addr, error) { return s.Links.AddrList(nil, netlink.FAMILY_V6) })
	for _, a := range addresses {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			all = append(all, ip)
		}
	}
	return all, err
}

// routes6 lists the IPv6 routes of all tables.
func routes6(s *Space) ([]netlink.Route, error) {
	all := &netlink.Route{Table: unix.RT_TABLE_UNSPEC}
	return list("IPv6 routes", func() ([]netlink.Route, error) {
		return s.Links.RouteListFiltered(netlink.FAMILY_V6, all, netlink.RT_FILTER_TABLE)
	})
}
