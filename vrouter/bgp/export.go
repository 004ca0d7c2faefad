package bgp

import (
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// Export returns the paths that a node announces in the networks that have export targets: the addresses
// of its ports, or their floating addresses, and the prefixes of the routes through these ports. In networks that bridge, it also
// announces MAC addresses (EVPN type 2), and that it receives broadcast (type 3). ports are the node's
// ports that forward packets. The node must have BGP, and the state must have its defaults.
func Export(n model.Node, networks []model.Network, ports []model.Port, routes []model.Route) (paths []Path) {
	x := exporter{node: n, nextHop: nextHopOf(n)}
	if !x.nextHop.IsValid() {
		return nil
	}
	portsOf := map[string][]model.Port{}
	for _, p := range ports {
		portsOf[p.Network] = append(portsOf[p.Network], p)
	}
	for _, n := range networks {
		if here := portsOf[n.Name]; len(here) > 0 && len(n.Export) > 0 {
			x.network(n, here, routes)
		}
	}
	return x.paths
}

// nextHopOf returns the underlay address that a node announces as next hop: its first IPv4 address, or
// its first IPv6 address if it has no IPv4 address.
func nextHopOf(n model.Node) netip.Addr {
	if i := slices.IndexFunc(n.Underlay, netip.Addr.Is4); i >= 0 {
		return n.Underlay[i]
	}
	if len(n.Underlay) > 0 {
		return n.Underlay[0]
	}
	return netip.Addr{}
}

type exporter struct {
	node    model.Node
	nextHop netip.Addr
	paths   []Path
}

func (x *exporter) network(n model.Network, ports []model.Port, routes []model.Route) {
	names := map[string]bool{}
	for _, p := range ports {
		names[p.Name] = true
		for _, a := range p.IPs {
			if n.Routes() {
				x.prefix(n, netip.PrefixFrom(p.Outside(a), a.BitLen()))
			}
		}
		if n.Bridges() {
			x.station(n, p)
		}
	}
	if n.Bridges() {
		x.add(n, model.EVPN, Path{Kind: Multicast, Origin: x.nextHop})
	}
	if !n.Routes() {
		return
	}
	for _, r := range routes {
		if r.Network == n.Name && slices.ContainsFunc(r.Via, func(v model.Via) bool { return v.Port != "" && names[v.Port] }) {
			x.prefix(n, r.Prefix.Masked())
		}
	}
}

// prefix announces a prefix with an MPLS label (VPNv4 or VPNv6). In networks that only route, it also
// announces it by EVPN. A network that bridges also bridges the frames that arrive with its VNI, so its
// prefixes have no EVPN path.
func (x *exporter) prefix(n model.Network, to netip.Prefix) {
	family := model.VPNv6
	if to.Addr().Is4() {
		family = model.VPNv4
	}
	if len(x.mpls()) > 0 {
		x.add(n, family, Path{Kind: VPN, Prefix: to})
	}
	if !n.Bridges() {
		x.add(n, model.EVPN, Path{Kind: Prefix, Prefix: to})
	}
}

// station announces the MAC address of a port, alone and with each of its IP addresses.
func (x *exporter) station(n model.Network, p model.Port) {
	x.add(n, model.EVPN, Path{Kind: Station, MAC: p.MAC})
	for _, a := range p.IPs {
		x.add(n, model.EVPN, Path{Kind: Station, MAC: p.MAC, Prefix: netip.PrefixFrom(a, a.BitLen())})
	}
}

// mpls returns the encapsulations with MPLS labels that the node offers.
func (x *exporter) mpls() []model.Encapsulation {
	return slices.DeleteFunc(x.node.Tunnels(), func(e model.Encapsulation) bool { return e == model.VXLAN })
}

// add completes a path and adds it, if the node announces its family. EVPN paths have a VNI if the node
// offers VXLAN, and a label otherwise.
func (x *exporter) add(n model.Network, f model.BGPFamily, p Path) {
	if all := x.node.BGP.Families; len(all) > 0 && !slices.Contains(all, f) {
		return
	}
	p.Family, p.RD, p.NextHop, p.Targets = f, n.Distinguisher(x.node.BGP.RouterID), x.nextHop, n.Export
	tunnels := x.mpls()
	switch {
	case f == model.EVPN && slices.Contains(x.node.Encapsulations, model.VXLAN):
		tunnels, p.Label = []model.Encapsulation{model.VXLAN}, n.VNI
		if p.Kind == Prefix {
			p.RouterMAC = x.node.RouterMAC()
		}
	case p.Kind == VPN:
		p.Label = n.Label()
	case p.Kind == Prefix:
		p.Label = n.Label() << labelShift
	default:
		p.Label = n.EthernetLabel() << labelShift
	}
	for _, e := range tunnels {
		p.Tunnels = append(p.Tunnels, tunnelTypes[e])
	}
	x.paths = append(x.paths, p)
}

// labelShift is the position of an MPLS label in the 24 bits of the label field of an EVPN path.
const labelShift = 4
