package fib

import (
	"net/netip"

	"windtunnel/vrouter/model"
)

// ports adds the vifs of this node's ports, and the routes and bridge entries of
// all ports in this node's networks.
func (c *compiler) ports() {
	for i := range c.state.Ports {
		p := &c.state.Ports[i]
		n := c.here[p.Network]
		switch {
		case n == nil:
		case p.Node == c.self.Name:
			c.localPort(p, n)
		default:
			c.remotePort(p, n)
		}
	}
}

func (c *compiler) remotePort(p *model.Port, n *network) {
	t := c.peers[p.Node]
	if t == nil {
		return // nodePeers has already warned about this node
	}
	c.portEntries(p, n, t.nexthop(!n.Routes()), t.label(n, !n.Routes()), t.bridged, t.label(n, true))
}

// portEntries adds the routes and the bridge entry of a port. In a network that
// bridges, each route also has the port's MAC address: the vrouter needs it to
// answer ARP requests and neighbour solicitations.
func (c *compiler) portEntries(p *model.Port, n *network, routed, label, bridged, ethernetLabel uint32) {
	r := Route{Nexthop: routed, Label: label}
	if n.Bridges() {
		r.MAC = p.MAC
		c.t.Bridge[BridgeKey{VRF: n.ID, MAC: p.MAC}] = BridgeEntry{Nexthop: bridged, Label: ethernetLabel}
	}
	for _, a := range p.IPs {
		c.host(n, a, r)
	}
}

func (c *compiler) localPort(p *model.Port, n *network) {
	fact, connected := c.facts.Ports[p.Name]
	if !connected {
		if p.Attach == (model.Attachment{}) {
			return // the port has no attachment yet, which needs no warning
		}
		c.warn("port %q has no device yet", p.Name)
		return
	}
	id := c.number(kindVif, p.Name, c.facts.Limits.Vifs)
	if id == 0 {
		return
	}
	mtu := n.mtu
	if fact.MTU > 0 {
		mtu = min(mtu, fact.MTU)
	}
	nexthop := c.nexthop("port "+p.Name, Nexthop{
		Type: Encap, VRF: n.ID, Vif: id, Oif: fact.Ifindex, Peer: fact.Peer, DMAC: p.MAC, SMAC: model.RouterMAC, MTU: mtu,
	})
	c.encaps[p.Name] = nexthop
	v := Vif{
		ID: id, Name: p.Name, Device: fact.Device, VRF: n.ID, Nexthop: nexthop, L2: n.Bridges(), L3: n.Routes(), Router: p.Router, Netkit: fact.Netkit,
		Egress: uint64(p.Bandwidth.Egress) / 8, MTU: mtu, MAC: p.MAC, RouterMAC: model.RouterMAC, Sources: sources(p, n),
	}
	if n.Routes() {
		v.Gateway4, v.Gateway6 = gatewayFor(p, n, netip.Addr.Is4), gatewayFor(p, n, netip.Addr.Is6)
	}
	if policy := c.policy(p, n); len(policy.Rules) > 0 {
		v.Policy = true
		c.t.Policies[id] = policy
	}
	c.t.Vifs[fact.Ifindex] = v
	c.portEntries(p, n, nexthop, 0, nexthop, 0)
	if n.Bridges() {
		n.flood = append(n.flood, Member{Nexthop: nexthop})
	}
}

// sources returns the prefixes that a port may send from. A port without addresses
// in a network that only bridges may use any address.
func sources(p *model.Port, n *network) []netip.Prefix {
	if len(p.IPs) == 0 && !n.Routes() {
		return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
	}
	all := make([]netip.Prefix, 0, len(p.IPs)+len(p.AllowSources))
	for _, a := range p.IPs {
		all = append(all, netip.PrefixFrom(a, a.BitLen()))
	}
	return fourFirst(append(all, p.AllowSources...), func(s netip.Prefix) bool { return s.Addr().Is4() })
}

// gatewayFor returns the router's address in the subnet that has an address of the
// port. If no subnet has one, it returns the address in the first subnet of the
// family. The result is zero if the network has no subnet of the family.
func gatewayFor(p *model.Port, n *network, family func(netip.Addr) bool) netip.Addr {
	for _, a := range p.IPs {
		if !family(a) {
			continue
		}
		for _, s := range n.Subnets {
			if s.Contains(a) {
				return gatewayOf(s)
			}
		}
	}
	for _, s := range n.Subnets {
		if family(s.Addr()) {
			return gatewayOf(s)
		}
	}
	return netip.Addr{}
}
