package model

import (
	"net/netip"
	"slices"
)

// Node finds a node by name.
func (s State) Node(name string) (Node, bool) {
	return find(s.Nodes, func(n Node) bool { return n.Name == name })
}

// Network finds a network by name.
func (s State) Network(name string) (Network, bool) {
	return find(s.Networks, func(n Network) bool { return n.Name == name })
}

// Port finds a port by name.
func (s State) Port(name string) (Port, bool) {
	return find(s.Ports, func(p Port) bool { return p.Name == name })
}

// Gateway finds a gateway by name.
func (s State) Gateway(name string) (Gateway, bool) {
	return find(s.Gateways, func(g Gateway) bool { return g.Name == name })
}

// Policy finds a policy by name.
func (s State) Policy(name string) (Policy, bool) {
	return find(s.Policies, func(p Policy) bool { return p.Name == name })
}

func find[E any](all []E, is func(E) bool) (e E, ok bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return e, false
}

// Routes reports whether the network routes IP packets.
func (n Network) Routes() bool { return n.Forwarding != L2 }

// Bridges reports whether the network bridges Ethernet frames.
func (n Network) Bridges() bool { return n.Forwarding == L2 || n.Forwarding == L2L3 }

// HasServer reports whether the agents answer DHCP or DNS in the network.
func (n Network) HasServer() bool { return n.DHCP || len(n.DNS) > 0 }

// Subnet finds the network's subnet that contains an address.
func (n Network) Subnet(a netip.Addr) (netip.Prefix, bool) {
	return find(n.Subnets, func(s netip.Prefix) bool { return s.Contains(a) })
}

// Network finds the gateway's values for a network.
func (g Gateway) Network(name string) (GatewayNetwork, bool) {
	return find(g.Networks, func(n GatewayNetwork) bool { return n.Network == name })
}

// GatewayAddress is the vrouter's address in a subnet. It directly follows the
// address of the subnet.
func GatewayAddress(subnet netip.Prefix) netip.Addr { return subnet.Masked().Addr().Next() }

// BroadcastAddress is the last address of an IPv4 subnet; zero for IPv6.
func BroadcastAddress(subnet netip.Prefix) netip.Addr {
	if !subnet.Addr().Is4() {
		return netip.Addr{}
	}
	return LastAddress(subnet)
}
