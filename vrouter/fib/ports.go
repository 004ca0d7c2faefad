package fib

import (
	"fmt"
	"net/netip"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// ports adds the vifs of this node's ports, and their routes and bridge entries.
func (c *compiler) ports() {
	for i := range c.state.Ports {
		p := &c.state.Ports[i]
		if n := c.here[p.Network]; n != nil {
			c.localPort(p, n)
		}
	}
}

func (c *compiler) localPort(p *model.Port, n *network) {
	fact, connected := c.facts.Ports[p.Name]
	if !connected {
		return // the caller reports the ports without a device
	}
	id := c.number(kindVif, p.Name, c.facts.Limits.Vifs)
	if id == 0 {
		return
	}
	out := layout.Nexthop{Type: layout.Encap, VRF: n.ID, Vif: id, DMAC: p.MAC, SMAC: model.RouterMAC, MTU: n.mtu}
	v := layout.Vif{
		ID: id, VRF: n.ID, Egress: uint64(p.Bandwidth.Egress) / 8, MTU: n.mtu, MAC: p.MAC, RouterMAC: model.RouterMAC,
		Flags: forwards(n) | layout.If[uint16](p.Router, layout.VifRouter) | layout.If[uint16](p == n.host, layout.VifNode) |
			layout.If[uint16](c.facts.Services && n.NodeAccess && p != n.host || p == n.host && len(n.NATPool) > 0, layout.VifServices) |
			layout.If[uint16](n.host != nil && p != n.host && len(p.Floating) > 0, layout.VifFloating) |
			layout.If[uint16](n.HasServer() && !p.Attach.Host, layout.VifAgent),
	}
	v = fact.vif(v)
	v.Nexthop = c.nexthop("port "+p.Name, fact.nexthop(out))
	c.encaps[p.Name] = v.Nexthop
	if err := v.SetSources(sources(p, n)); err != nil {
		c.errs = append(c.errs, fmt.Errorf("port %q: %w", p.Name, err))
	}
	if n.Routes() {
		v.Gateway4, v.Gateway6 = layout.Network4(gatewayFor(p, n, netip.Addr.Is4)), layout.AddressOf(gatewayFor(p, n, netip.Addr.Is6))
	}
	policy := c.policy(p, n)
	judges := len(policy.Rules) > 0 || policy.Group.isClosed()
	if judges || c.state.Settings.FlowExport.IsOn() {
		v.Flags |= layout.VifPolicy | layout.If[uint16](!judges, layout.VifOpen)
		c.t.Policies[id] = policy
	}
	c.t.Vifs[fact.Ifindex], c.t.Ports[id] = v, p.Name
	leg{hop{vrf: n.ID, bridges: n.Bridges(), routed: v.Nexthop, leaked: v.Nexthop, bridged: v.Nexthop}, n.importers}.addTo(&c.t, p.MAC, p.IPs)
	if n.Bridges() {
		n.flood = append(n.flood, layout.Member{Nexthop: v.Nexthop})
	}
}

// vif returns v for the port's device: it sets the fields that differ between devices.
func (f PortFact) vif(v layout.Vif) layout.Vif {
	v.Flags = v.Flags&^layout.VifNetkit | layout.If[uint16](f.Netkit, layout.VifNetkit)
	return v
}

// nexthop returns n, which leads to the port's vif, for the port's device: it sets the fields that differ between devices.
func (f PortFact) nexthop(n layout.Nexthop) layout.Nexthop {
	n.Oif, n.Flags = f.Ifindex, n.Flags&^layout.NexthopPeer|layout.If[uint8](f.Peer, layout.NexthopPeer)
	return n
}

// Reconnect replaces the devices of ports in the tables of c. was is the value of Facts.Ports with which Compile made c, and is
// has the new devices of the same ports. After Reconnect, c equals the result of Compile with the new devices and these limits.
// If a port has no device in was or in is, or if an id exceeds its limit, Reconnect returns false and changes nothing, and the
// caller must call Compile.
func (c *Compiled) Reconnect(was, is map[string]PortFact, limits Limits) bool {
	if len(was) != len(is) {
		return false
	}
	type move struct {
		layout.Vif
		from, to PortFact
	}
	moved := map[uint32]move{} // by vif id
	for name, f := range is {
		before, had := was[name]
		if !had {
			return false
		}
		if v, has := c.Vifs[before.Ifindex]; has && before != f {
			moved[v.ID] = move{v, before, f}
		}
	}
	for id := range c.Nexthops {
		if limits.Nexthops != 0 && id >= limits.Nexthops {
			return false
		}
	}
	for id := range c.Ports {
		if limits.Vifs != 0 && id > limits.Vifs {
			return false
		}
	}
	for _, m := range moved {
		delete(c.Vifs, m.from.Ifindex)
	}
	for _, m := range moved {
		c.Vifs[m.to.Ifindex] = m.to.vif(m.Vif)
	}
	for id, n := range c.Nexthops {
		if m, is := moved[n.Vif]; is && n.Type == layout.Encap {
			c.Nexthops[id] = m.to.nexthop(n)
		}
	}
	return true
}

var everything = []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}

// sources returns the prefixes that a port may send from. A port without addresses
// in a network that only bridges may use any address. So may a node with node_access, with
// the limits of layout.VifNode.
func sources(p *model.Port, n *network) []netip.Prefix {
	if len(p.IPs) == 0 && !n.Routes() {
		return everything
	}
	all := make([]netip.Prefix, 0, len(p.IPs)+len(p.AllowSources))
	for _, a := range p.IPs {
		all = append(all, netip.PrefixFrom(a, a.BitLen()))
	}
	if p == n.host {
		all = append(all, everything...)
	}
	return append(all, p.AllowSources...)
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
				return model.GatewayAddress(s)
			}
		}
	}
	for _, s := range n.Subnets {
		if family(s.Addr()) {
			return model.GatewayAddress(s)
		}
	}
	return netip.Addr{}
}
