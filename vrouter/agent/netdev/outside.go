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

// Access is what the networks with node_access need of the node's kernel.
type Access struct {
	Subnets []netip.Prefix // of these networks
	Pools   []netip.Prefix // their pools, whose addresses the eBPF programs translate
	Routes  []PoolRoute
}

// PoolRoute leads packets to an address of a pool into its network.
type PoolRoute struct {
	Address netip.Addr
	Gateway netip.Addr // of the network's subnet
	Device  string     // that connects the node to the network
}

// Equal reports whether a and b are equal.
func (a Access) Equal(b Access) bool {
	return slices.Equal(a.Subnets, b.Subnets) && slices.Equal(a.Pools, b.Pools) && slices.Equal(a.Routes, b.Routes)
}

// Add adds what a network needs, to which the port `host` connects this node. ports are all ports.
func (a *Access) Add(n model.Network, host model.Port, ports []model.Port) {
	a.Subnets, a.Pools = append(a.Subnets, n.Subnets...), append(a.Pools, n.NATPool...)
	for _, p := range ports {
		if p.Network != n.Name || p.Node != host.Node {
			continue
		}
		for _, f := range p.Floating {
			if subnet, ok := n.Subnet(host.Inside(f)); ok && n.InPool(f) {
				a.Routes = append(a.Routes, PoolRoute{f, model.GatewayAddress(subnet), InterfaceOf(host)})
			}
		}
	}
}

// keepRoutes adds routes to the addresses of pools that this node has, and removes the routes to others. changed reports
// whether something differed.
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
				continue // a locator's
			}
			gateway, _ := netip.AddrFromSlice(r.Gw)
			w := PoolRoute{p.Addr(), gateway.Unmap(), ""}
			if l, err := s.Links.LinkByIndex(r.LinkIndex); err == nil {
				w.Device = l.Attrs().Name
			}
			if slices.Contains(a.Routes, w) {
				has[w] = true
			} else if err := s.Links.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
				errs = append(errs, fmt.Errorf("nat_pool: remove the route to %s: %w", p, err))
			} else {
				changed = true
			}
		}
	}
	for _, w := range a.Routes {
		if has[w] {
			continue
		}
		l, err := s.Links.LinkByName(w.Device)
		if err == nil {
			err = s.Links.RouteReplace(&netlink.Route{
				Dst: IPNet(netip.PrefixFrom(w.Address, w.Address.BitLen())), Gw: w.Gateway.AsSlice(), LinkIndex: l.Attrs().Index, Protocol: locatorProtocol, Table: unix.RT_TABLE_MAIN,
			})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("nat_pool: add a route to %s by device %s: %w", w.Address, w.Device, err))
		}
		changed = true
	}
	return changed, errors.Join(errs...)
}
