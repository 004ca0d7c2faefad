package model

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
)

// MaxFloating is the number of floating addresses of a port.
const MaxFloating = 2

// firstNATPort is the least source port of packets that leave a network with a pool.
const firstNATPort = 1024

// Addresses returns the addresses in the subnets and the floating addresses of a port, and an address that stands for its
// NATSlot. No other port of the network may have one of them.
func (p *Port) Addresses() []netip.Addr { return addresses(p.IPs, p.Floating, p.NATSlot) }

// Addresses returns the addresses that Port.Addresses returns for the same port.
func (c *CompactPort) Addresses() []netip.Addr { return addresses(c.IPs, c.Floating, c.NATSlot) }

func addresses(ips, floating []netip.Addr, slot uint16) []netip.Addr {
	if len(floating) == 0 && slot == 0 {
		return ips
	}
	all := slices.Concat(ips, floating)
	if slot > 0 {
		all = append(all, SlotAddress(slot))
	}
	return all
}

// SlotAddress returns the address that stands for a NATSlot. It is in 100::/64, to which no packet can be sent (RFC 6666).
func SlotAddress(slot uint16) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 1, 14: byte(slot >> 8), 15: byte(slot)})
}

// SlotOf returns the NATSlot for which an address stands.
func SlotOf(a netip.Addr) uint16 {
	bytes := a.As16()
	return uint16(bytes[14])<<8 | uint16(bytes[15])
}

// NATSlots returns the number of nodes that can share the network's pool.
func (n Network) NATSlots() uint16 {
	each := n.slotsPerAddress()
	if each == 0 {
		return 0
	}
	slots := math.MaxUint16
	for _, p := range n.shared() {
		if bits := p.Addr().BitLen() - p.Bits(); bits < 16 {
			slots = min(slots, int(each)<<bits)
		}
	}
	return uint16(slots)
}

func (n Network) slotsPerAddress() uint16 {
	if n.NATPorts == 0 {
		return 0
	}
	return (math.MaxUint16 - firstNATPort + 1) / n.NATPorts
}

// shared returns the pool's first prefix of each family.
func (n Network) shared() (all []netip.Prefix) {
	for _, p := range n.NATPool {
		if !slices.ContainsFunc(all, func(q netip.Prefix) bool { return p.Addr().Is4() == q.Addr().Is4() }) {
			all = append(all, p)
		}
	}
	return all
}

// Share is a node's part of a pool: one address of each family, and the source ports of packets that leave the network.
type Share struct {
	Addresses           []netip.Addr
	FirstPort, LastPort uint16
}

// NodeShare returns the share of the node that a port connects. In a network with NATPorts, the shares of two nodes have
// different addresses or different ports, because their NATSlot differs.
func (n Network) NodeShare(host Port) Share {
	if n.NATPorts == 0 {
		return Share{host.Floating, firstNATPort, math.MaxUint16}
	}
	if host.NATSlot == 0 || host.NATSlot > n.NATSlots() {
		return Share{}
	}
	slot := host.NATSlot - 1
	s := Share{FirstPort: firstNATPort + slot%n.slotsPerAddress()*n.NATPorts}
	s.LastPort = s.FirstPort + n.NATPorts - 1
	for _, p := range n.shared() {
		a := p.Addr()
		for range slot / n.slotsPerAddress() {
			a = a.Next()
		}
		s.Addresses = append(s.Addresses, a)
	}
	return s
}

// PoolAddresses returns the addresses of the pool that stand for a port.
func (n Network) PoolAddresses(p Port) []netip.Addr {
	if p.NATSlot > 0 {
		return n.NodeShare(p).Addresses
	}
	return p.Floating
}

// InPool reports whether an address is in the pool of a network.
func (n Network) InPool(a netip.Addr) bool {
	return slices.ContainsFunc(n.NATPool, func(p netip.Prefix) bool { return p.Contains(a) })
}

// NodeAddress returns the node's address of one family in the network's pool. host is the port that connects the node.
// Zero: the node has none.
func (n Network) NodeAddress(host Port, family func(netip.Addr) bool) netip.Addr {
	for _, a := range n.NodeShare(host).Addresses {
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
	// FirstPort and LastPort are the source ports of the node, if nodes share the address; else 0.
	FirstPort uint16 `json:"first_port,omitempty"`
	LastPort  uint16 `json:"last_port,omitempty"`
}

// FloatingAddresses returns the addresses of the pool that the network's ports use, in order of address and port.
func (n Network) FloatingAddresses(ports []Port) (all []Floating) {
	for _, p := range ports {
		if p.Network != n.Name {
			continue
		}
		for _, a := range n.PoolAddresses(p) {
			f := Floating{Address: a, Node: p.Node, Network: p.Network, Port: p.Name}
			if p.NATSlot > 0 {
				s := n.NodeShare(p)
				f.FirstPort, f.LastPort = s.FirstPort, s.LastPort
			}
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b Floating) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.FirstPort, b.FirstPort))
	})
	return all
}

// checkPool refuses a pool without node_access, with invalid prefixes, or with addresses that have another use.
func (v *validation) checkPool(n Network) {
	if len(n.NATPool) > 0 && !n.NodeAccess {
		v.fail("network", n.Name, "nat_pool: a pool needs node_access; set node_access, or remove the pool")
	}
	if n.NATPorts > 0 && (len(n.NATPool) == 0 || n.NATPorts < 64 || n.slotsPerAddress() == 0) {
		v.fail("network", n.Name, "nat_ports: %d ports of each node need a nat_pool, and must be 64 to %d; change nat_ports", n.NATPorts, math.MaxUint16-firstNATPort+1)
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
		case n.NATPorts > 0 && slices.ContainsFunc(n.shared(), func(s netip.Prefix) bool { return s.Contains(a) }):
			v.fail("port", p.Name, "floating: nodes share the prefix of %s (nat_ports of network %q); choose an address of another prefix of nat_pool, or add a prefix", a, n.Name)
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
	if p.NATSlot == 0 {
		return
	}
	if !p.Attach.Host && p.Attach != (Attachment{}) {
		v.fail("port", p.Name, "nat_slot: only a port that connects a node has one; remove it")
	}
	key := networkKey[netip.Addr]{p.Network, SlotAddress(p.NATSlot)}
	if other, taken := v.ips[key]; taken {
		v.fail("port", p.Name, "nat_slot: %d is already used by port %q; choose another", p.NATSlot, other)
	}
	v.ips[key] = p.Name
}
