package modeltest

import (
	"fmt"
	"net/netip"
	"strings"

	"windtunnel/vrouter/model"
)

// complete allocates the missing fields of a port: an address of each family that
// its network has a subnet of, a name, and a MAC. It fails if no address is free.
func complete(s model.State, p model.Port) (model.Port, error) {
	n, _ := s.Network(p.Network)
	taken := takenIn(s, n.Name)
	var err error
	if len(p.IPs) == 0 {
		if p.IPs, err = taken.free(n); err != nil {
			return p, err
		}
	}
	if p.Name == "" {
		p.Name = model.PortName(p, func(name string) bool { _, has := s.Port(name); return has })
	}
	if p.MAC.IsZero() {
		p.MAC = model.PortMAC(p, func(m model.MAC) bool { return taken.macs[m] })
	}
	return p, nil
}

// taken has the addresses and MACs in use in a network.
type taken struct {
	addresses map[netip.Addr]bool
	macs      map[model.MAC]bool
}

// takenIn returns the addresses and MACs of ports, routes and gateways.
func takenIn(s model.State, network string) taken {
	t := taken{map[netip.Addr]bool{}, map[model.MAC]bool{model.RouterMAC: true}}
	for i := range s.Ports {
		if p := &s.Ports[i]; p.Network == network {
			t.macs[p.MAC] = true
			for _, a := range p.IPs {
				t.addresses[a] = true
			}
		}
	}
	host := func(p netip.Prefix) {
		if p.IsSingleIP() {
			t.addresses[p.Addr()] = true
		}
	}
	for _, r := range s.Routes {
		if r.Network == network {
			host(r.Prefix)
		}
	}
	for _, g := range s.Gateways {
		gn, _ := g.Network(network)
		for _, p := range gn.Prefixes {
			host(p)
		}
		for _, m := range gn.MACs {
			t.macs[m] = true
		}
	}
	return t
}

// free is an address of each family: from the first subnet that has one.
func (t taken) free(n model.Network) (free []netip.Addr, err error) {
	for _, family := range []struct {
		name string
		is   func(netip.Addr) bool
	}{{"IPv4", netip.Addr.Is4}, {"IPv6", netip.Addr.Is6}} {
		var full []string
		found := false
		for _, subnet := range n.Subnets {
			if found || !family.is(subnet.Addr()) {
				continue
			}
			a, ok := t.next(subnet)
			if ok {
				free, found = append(free, a), true
				continue
			}
			full = append(full, subnet.String())
		}
		if !found && len(full) > 0 {
			return nil, fmt.Errorf("network %q: subnets: no %s address is free in %s; delete ports, or add a subnet", n.Name, family.name, strings.Join(full, ", "))
		}
	}
	return free, nil
}

// next returns the first free address of a subnet. It never returns the
// gateway's address, also in an L2 network: that network may route later.
func (t taken) next(p netip.Prefix) (netip.Addr, bool) {
	last := model.BroadcastAddress(p)
	for a := model.GatewayAddress(p).Next(); p.Contains(a); a = a.Next() {
		if !t.addresses[a] && a != last {
			return a, true
		}
	}
	return netip.Addr{}, false
}
