package model

import (
	"net/netip"
	"slices"
)

// MaxFloating is the number of floating addresses of a port.
const MaxFloating = 2

// Addresses returns the addresses in the subnets and the floating addresses of a port. No other port of the network may
// have one of them.
func (p *Port) Addresses() []netip.Addr {
	if len(p.Floating) == 0 {
		return p.IPs
	}
	return slices.Concat(p.IPs, p.Floating)
}

// InPool reports whether an address is in the pool of a network.
func (n Network) InPool(a netip.Addr) bool {
	return slices.ContainsFunc(n.NATPool, func(p netip.Prefix) bool { return p.Contains(a) })
}

// NodeAddress returns the node's address of one family in the network's pool. host is the port that connects the node.
// Zero: the node has none.
func (n Network) NodeAddress(host Port, family func(netip.Addr) bool) netip.Addr {
	for _, a := range host.Floating {
		if family(a) && n.InPool(a) {
			return a
		}
	}
	return netip.Addr{}
}

// Inside returns the address to which NAT translates a floating address of the port: its first address of the same family.
// Zero: the port has none.
func (p *Port) Inside(floating netip.Addr) netip.Addr {
	for _, a := range p.IPs {
		if a.Is4() == floating.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// Outside returns the address by which hosts outside the network know the workload with the address inside: the floating
// address that corresponds to it, or else inside itself.
func (p *Port) Outside(inside netip.Addr) netip.Addr {
	for _, f := range p.Floating {
		if !p.Attach.Host && p.Inside(f) == inside {
			return f
		}
	}
	return inside
}

// Floating is an address of a pool that is in use. Routers outside the network must route it to the node.
type Floating struct {
	Address netip.Addr `json:"address"`
	Node    string     `json:"node"`
	Network string     `json:"network"`
	Port    string     `json:"port"` // of the workload; for the address that all workloads of a node share: of the node
}

// FloatingAddresses returns the addresses of pools that ports use, in order of address.
func FloatingAddresses(ports []Port) (all []Floating) {
	for _, p := range ports {
		for _, a := range p.Floating {
			all = append(all, Floating{a, p.Node, p.Network, p.Name})
		}
	}
	slices.SortFunc(all, func(a, b Floating) int { return a.Address.Compare(b.Address) })
	return all
}

// checkPool refuses a pool without node_access, with invalid prefixes, or with addresses that have another use.
func (v *validation) checkPool(n Network) {
	if len(n.NATPool) > 0 && !n.NodeAccess {
		v.fail("network", n.Name, "nat_pool: a pool needs node_access; set node_access, or remove the pool")
	}
	for i, p := range n.NATPool {
		if wrong := notCanonical(p); wrong != "" {
			v.fail("network", n.Name, "nat_pool: %s", wrong)
			continue
		}
		if !usable(p.Addr()) {
			v.fail("network", n.Name, "nat_pool: %s is not a prefix of unicast addresses; write one such as 203.0.113.0/28", p)
		}
		if slices.ContainsFunc(n.NATPool[:i], p.Overlaps) {
			v.fail("network", n.Name, "nat_pool: %s overlaps another prefix of the pool; remove one", p)
		}
		for _, o := range v.s.Networks {
			if at := slices.IndexFunc(o.Subnets, p.Overlaps); at >= 0 && (o.Tenant == n.Tenant || o.NodeAccess) {
				v.fail("network", n.Name, "nat_pool: %s overlaps the subnet %s of network %q; choose addresses outside the networks", p, o.Subnets[at], o.Name)
			}
			if at := slices.IndexFunc(o.NATPool, p.Overlaps); at >= 0 && o.Name < n.Name {
				v.fail("network", n.Name, "nat_pool: %s overlaps %s, the pool of network %q; give each network its own addresses", p, o.NATPool[at], o.Name)
			}
		}
		for _, node := range v.s.Nodes {
			if at := slices.IndexFunc(node.Underlay, p.Contains); at >= 0 {
				v.fail("network", n.Name, "nat_pool: %s contains %s, an underlay address of node %q; choose another pool", p, node.Underlay[at], node.Name)
			}
		}
	}
}

// checkFloating refuses floating addresses that are outside the pool, that another port has, or to which no address of the
// port corresponds.
func (v *validation) checkFloating(p *Port, n *Network) {
	families := map[bool]bool{}
	for _, a := range p.Floating {
		switch {
		case !a.IsValid() || families[a.Is4()]:
			v.fail("port", p.Name, "floating: %s is invalid, or the second address of its family; give at most one IPv4 and one IPv6 address", a)
		case p.Attach.Host || p.Attach == (Attachment{}): // connects a node, whose agent replaces it when the pool changes; other nodes do not know its attachment
		case !n.InPool(a):
			v.fail("port", p.Name, "floating: %s is not in the pool of network %q, which has %v; choose an address of the pool, or change the pool with `vrouter network nat`", a, n.Name, n.NATPool)
		case !p.Inside(a).IsValid():
			v.fail("port", p.Name, "floating: the port has no address of the same family as %s; remove the floating address", a)
		}
		families[a.Is4()] = true
		key := networkKey[netip.Addr]{p.Network, a}
		if other, taken := v.ips[key]; taken && other != p.Name {
			v.fail("port", p.Name, "floating: %s is already used by port %q; choose another", a, other)
		}
		v.ips[key] = p.Name
	}
}
