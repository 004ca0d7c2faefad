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
	nexthop := c.nexthop("port "+p.Name, layout.Nexthop{
		Type: layout.Encap, VRF: n.ID, Vif: id, Oif: fact.Ifindex, Flags: layout.If[uint8](fact.Peer, layout.NexthopPeer), DMAC: p.MAC, SMAC: model.RouterMAC, MTU: n.mtu,
	})
	c.encaps[p.Name] = nexthop
	v := layout.Vif{
		ID: id, VRF: n.ID, Nexthop: nexthop, Egress: uint64(p.Bandwidth.Egress) / 8, MTU: n.mtu, MAC: p.MAC, RouterMAC: model.RouterMAC,
		Flags: forwards(n) | layout.If[uint16](p.Router, layout.VifRouter) | layout.If[uint16](fact.Netkit, layout.VifNetkit) | layout.If[uint16](p == n.host, layout.VifNode) |
			layout.If[uint16](c.facts.Services && n.NodeAccess && p != n.host || p == n.host && len(n.NATPool) > 0, layout.VifServices) |
			layout.If[uint16](n.host != nil && p != n.host && len(p.Floating) > 0, layout.VifFloating) |
			layout.If[uint16](n.HasServer() && !p.Attach.Host, layout.VifAgent),
	}
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
	leg{hop{vrf: n.ID, bridges: n.Bridges(), routed: nexthop, leaked: nexthop, bridged: nexthop}, n.importers}.addTo(&c.t, p.MAC, p.IPs)
	if n.Bridges() {
		n.flood = append(n.flood, layout.Member{Nexthop: nexthop})
	}
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
