package netdev

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/model"
)

// Access has the parts of networks with node_access for which KeepAccess configures the node's kernel.
type Access struct {
	Subnets []netip.Prefix // of these networks
	Pools   []netip.Prefix // nat_pool of these networks; the eBPF programs translate these addresses
	Routes  []PoolRoute
}

// PoolRoute is a route from the node's kernel into a network, for one address of the network's pool.
type PoolRoute struct {
	Address netip.Addr
	Gateway netip.Addr // first address of the subnet
	Device  string     // the device that connects the node to the network
}

// Equal reports whether a and b are equal.
func (a Access) Equal(b Access) bool {
	return slices.Equal(a.Subnets, b.Subnets) && slices.Equal(a.Pools, b.Pools) && slices.Equal(a.Routes, b.Routes)
}

// Add adds a network. The port `host` connects this node to it. ports are the ports of all nodes.
func (a *Access) Add(n model.Network, host model.Port, ports []model.Port) {
	a.Subnets, a.Pools = append(a.Subnets, n.Subnets...), append(a.Pools, n.NATPool...)
	for _, p := range ports {
		if p.Network != n.Name || p.Node != host.Node {
			continue
		}
		for _, f := range n.PoolAddresses(p) {
			if subnet, ok := n.Subnet(host.Inside(f)); ok && n.InPool(f) {
				a.Routes = append(a.Routes, PoolRoute{f, model.GatewayAddress(subnet), InterfaceOf(host)})
			}
		}
	}
}

// keepRoutes adds the missing routes, and removes the agent's routes to other addresses of pools. changed reports whether
// it has changed a route.
func (a Access) keepRoutes(s *Space) (changed bool, err error) {
	has := map[PoolRoute]bool{}
	var errs []error
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := list("routes to pools", func() ([]netlink.Route, error) {
			return s.Links.RouteListFiltered(family, &netlink.Route{Protocol: locatorProtocol, Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_PROTOCOL|netlink.RT_FILTER_TABLE)
		})
		if err != nil && len(a.Routes) > 0 {
			errs = append(errs, fmt.Errorf("nat_pool: %w", err))
		}
		for _, r := range routes {
			p, ok := PrefixOf(r.Dst)
			if !ok || !p.IsSingleIP() {
				continue // the route of a locator
			}
			gateway, _ := netip.AddrFromSlice(r.Gw)
			found := PoolRoute{p.Addr(), gateway.Unmap(), ""}
			if l, err := s.Links.LinkByIndex(r.LinkIndex); err == nil {
				found.Device = l.Attrs().Name
			}
			if slices.Contains(a.Routes, found) {
				has[found] = true
			} else if err := s.Links.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
				errs = append(errs, fmt.Errorf("nat_pool: remove the route to %s: %w", p, err))
			} else {
				changed = true
			}
		}
	}
	for _, want := range a.Routes {
		if has[want] {
			continue
		}
		l, err := s.Links.LinkByName(want.Device)
		if err == nil {
			err = s.Links.RouteReplace(&netlink.Route{
				Dst: IPNet(netip.PrefixFrom(want.Address, want.Address.BitLen())), Gw: want.Gateway.AsSlice(), LinkIndex: l.Attrs().Index, Protocol: locatorProtocol, Table: unix.RT_TABLE_MAIN,
			})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("nat_pool: add a route to %s by device %s: %w", want.Address, want.Device, err))
			continue
		}
		changed = true
	}
	return changed, errors.Join(errs...)
}
