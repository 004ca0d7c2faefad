package fib

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// networks adds the VRFs, the nexthops of labels and VNIs, the routers' addresses,
// and the prefixes and MAC addresses behind gateways.
func (c *compiler) networks() {
	for i := range c.state.Networks {
		if n := c.here[c.state.Networks[i].Name]; n != nil {
			c.vrf(n)
		}
	}
	for _, g := range c.state.Gateways {
		t := c.foreign[g.Name]
		if t == nil {
			continue
		}
		for _, gn := range g.Networks {
			if n := c.here[gn.Network]; n != nil {
				c.gatewayNetwork(t, gn, n)
			}
		}
	}
}

func (c *compiler) vrf(n *network) {
	router := model.RouterMAC
	if !n.Bridges() {
		router = c.self.RouterMAC()
	}
	c.t.VRFs[n.ID] = layout.VRF{Flags: forwards(n), RouterMAC: router, Prefix6: prefix6(n)}
	ethernet := layout.Target{Ethernet: 1}
	if n.Routes() {
		ethernet.Nexthop = c.nexthop("vrf "+n.Name, layout.Nexthop{Type: layout.VRFTranslate, VRF: n.ID})
		c.t.ILM[n.Label()] = layout.Target{Nexthop: ethernet.Nexthop}
		receive := c.nexthop("receive "+n.Name, layout.Nexthop{Type: layout.Receive, VRF: n.ID})
		for _, s := range n.Subnets {
			c.t.Routes[hostKey(n.ID, model.GatewayAddress(s))] = layout.Route{Nexthop: receive}
		}
		for _, a := range n.DNS { // a network that bridges answers ARP only for routes with a MAC address
			c.t.Routes[hostKey(n.ID, a)] = layout.Route{Nexthop: receive, MAC: model.RouterMAC, Flags: layout.RouteMAC}
		}
	}
	if n.Bridges() {
		ethernet.Nexthop = c.nexthop("l2 "+n.Name, layout.Nexthop{Type: layout.L2Receive, VRF: n.ID})
		c.t.ILM[n.EthernetLabel()] = ethernet
	}
	c.t.VNIs[vni(n)] = ethernet
}

// forwards returns the flags of vifs and VRFs for the forwarding of a network.
func forwards(n *network) uint16 {
	return layout.If[uint16](n.Bridges(), layout.VifL2) | layout.If[uint16](n.Routes(), layout.VifL3)
}

func vni(n *network) uint32 { return cmp.Or(n.VNI, n.ID) }

func hostKey(vrf uint32, a netip.Addr) RouteKey {
	return RouteKey{VRF: vrf, Prefix: netip.PrefixFrom(a, a.BitLen())}
}

// label returns the number that the remote node expects in packets of a network: the
// MPLS label, the VNI, or with direct the network's ID.
func (t *tunnel) label(n *network, ethernet bool) uint32 {
	switch encap := t.of(ethernet); {
	case encap == model.VXLAN:
		return vni(n)
	case encap == model.Direct, encap == model.Translated:
		return n.ID
	case ethernet:
		return n.EthernetLabel()
	}
	return n.Label()
}

// foreignLabel returns the label or VNI that the gateway expects in packets of a
// network.
func (t *tunnel) foreignLabel(gn model.GatewayNetwork, n *network, ethernet bool) uint32 {
	switch {
	case t.encap == model.VXLAN:
		return cmp.Or(gn.VNI, vni(n))
	case ethernet:
		return gn.EthernetLabel
	}
	return gn.Label
}

func (c *compiler) gatewayNetwork(t *tunnel, gn model.GatewayNetwork, n *network) {
	if n.Routes() {
		for _, p := range gn.Prefixes {
			c.t.Routes[RouteKey{VRF: n.ID, Prefix: p.Masked()}] = layout.Route{Nexthop: t.ip, Label: t.foreignLabel(gn, n, false)}
		}
	}
	if !n.Bridges() {
		return
	}
	label := t.foreignLabel(gn, n, true)
	for _, m := range gn.MACs {
		c.t.Bridge[layout.BridgeKey{VRF: n.ID, MAC: m}] = layout.BridgeEntry{Nexthop: t.ethernet, Label: label}
	}
	if gn.Flood {
		n.flood = append(n.flood, layout.Member{Nexthop: t.ethernet, Label: label})
	}
}

// truncateFlood shortens a replication list to mostFlood members. It removes the
// last ports of this node, which then receive no broadcast. It keeps other nodes
// and gateways.
func (c *compiler) truncateFlood(flood []layout.Member) []layout.Member {
	kept := make([]layout.Member, 0, mostFlood)
	excess := len(flood) - mostFlood
	for i := len(flood) - 1; i >= 0; i-- {
		if excess > 0 && c.t.Nexthops[flood[i].Nexthop].Type == layout.Encap {
			excess--
			continue
		}
		kept = append(kept, flood[i])
	}
	slices.Reverse(kept)
	return kept[:min(len(kept), mostFlood)]
}

// floods adds the replication list of each network: this node's ports, and the other nodes
// with ports of the network.
func (c *compiler) floods() {
	for i := range c.state.Networks {
		n := c.here[c.state.Networks[i].Name]
		if n == nil || !n.Bridges() {
			continue
		}
		for j := range c.state.Nodes {
			name := c.state.Nodes[j].Name
			if t := c.peers[name].in(n); t != nil && n.members[name] && t.bridged != 0 {
				n.flood = append(n.flood, layout.Member{Nexthop: t.bridged, Label: t.label(n, true)})
			}
		}
		if len(n.flood) > mostFlood {
			c.refuse(n, &LimitError{Table: "members", What: "destinations of broadcast", Of: fmt.Sprintf("network %q", n.Name), Want: len(n.flood), Limit: mostFlood})
			n.flood = c.truncateFlood(n.flood)
		}
		if len(n.flood) > 0 {
			vrf := c.t.VRFs[n.ID]
			vrf.Flood = c.nexthop("flood "+n.Name, layout.Nexthop{Type: layout.Composite, VRF: n.ID, Flags: layout.NexthopMulticast}, n.flood...)
			c.t.VRFs[n.ID] = vrf
		}
	}
}
