package model

import (
	"fmt"
	"net/netip"
)

func (v *validation) checkGateways() {
	owners := map[netip.Addr]owner{}
	for _, n := range v.s.Nodes {
		for _, a := range n.Underlay {
			owners[a] = owner{"node", n.Name}
		}
	}
	for _, g := range v.s.Gateways {
		v.checkGatewayAddresses(g, owners)
		v.checkEncapsulation("gateway", g.Name, "encapsulation", g.Encapsulation)
		if g.Encapsulation == VXLAN && !g.MAC.IsUnicast() {
			v.fail("gateway", g.Name, "mac: %s is a multicast address; write the MAC of the gateway's router", g.MAC)
		}
		seen := map[string]bool{}
		for _, n := range g.Networks {
			if seen[n.Network] {
				v.fail("gateway", g.Name, "networks: %q is listed twice; merge the two entries", n.Network)
				continue
			}
			seen[n.Network] = true
			v.checkGatewayNetwork(g, n)
		}
	}
}

// checkGatewayAddresses refuses addresses of other owners: the sender of a packet is identified by its address.
func (v *validation) checkGatewayAddresses(g Gateway, owners map[netip.Addr]owner) {
	if len(g.Addresses) == 0 {
		v.fail("gateway", g.Name, "addresses: needs one")
	}
	self := owner{"gateway", g.Name}
	for _, a := range g.Addresses {
		switch other, taken := owners[a]; {
		case !usable(a):
			v.fail("gateway", g.Name, "addresses: %s cannot be a gateway's address; write a unicast one such as 192.0.2.1", a)
		case other == self:
			v.fail("gateway", g.Name, "addresses: %s is listed twice; remove one", a)
		case taken:
			v.fail("gateway", g.Name, "addresses: %s is the address of %s; choose another", a, other)
		}
		owners[a] = self
	}
}

func (v *validation) checkGatewayNetwork(g Gateway, gn GatewayNetwork) {
	n := v.networks[gn.Network]
	if n == nil {
		v.fail("gateway", g.Name, "networks: %s", missing(v, "network", gn.Network, v.networks))
		return
	}
	fail := func(format string, args ...any) {
		v.fail("gateway", g.Name, "network %q: %s", gn.Network, fmt.Sprintf(format, args...))
	}
	checkLabels(g, gn, fail)
	if !n.Routes() && len(gn.Prefixes) > 0 {
		fail("prefixes: the network only bridges; make it l3 or l2l3")
	}
	if n.Forwarding == L3 && (len(gn.MACs) > 0 || gn.Flood) {
		fail("macs and flood: the network only routes; make it l2 or l2l3")
	}
	for _, p := range gn.Prefixes {
		if wrong := notCanonical(p); wrong != "" {
			fail("prefixes: %s", wrong)
			continue
		}
		v.claimPrefix("gateway", g.Name, fmt.Sprintf("network %q: prefixes: ", gn.Network), gn.Network, p)
	}
	v.checkGatewayMACs(g.Name, gn, fail)
}

// checkLabels refuses missing or invalid labels that packets to a gateway need.
func checkLabels(g Gateway, gn GatewayNetwork, fail func(string, ...any)) {
	if g.Encapsulation == VXLAN {
		if gn.VNI > MaxVNI {
			fail("vni: %d is larger than %d", gn.VNI, MaxVNI)
		}
		return
	}
	if len(gn.Prefixes) > 0 && !isLabel(gn.Label) {
		fail("label: %d is not from %d to %d; it needs the one that the gateway expects on IP packets", gn.Label, FirstLabel, MaxLabel)
	}
	if (len(gn.MACs) > 0 || gn.Flood) && !isLabel(gn.EthernetLabel) {
		fail("ethernet_label: %d is not from %d to %d; it needs the one that the gateway expects on Ethernet frames", gn.EthernetLabel, FirstLabel, MaxLabel)
	}
}

func (v *validation) checkGatewayMACs(gateway string, gn GatewayNetwork, fail func(string, ...any)) {
	for _, m := range gn.MACs {
		key := networkKey[MAC]{gn.Network, m}
		switch other, taken := v.macs[key]; {
		case m.IsZero():
			fail("macs: an empty MAC address; write one such as 02:00:00:00:00:01")
		case !m.IsUnicast():
			fail("macs: %s is a multicast address; list only addresses of devices behind the gateway", m)
		case m == RouterMAC:
			fail("macs: %s is the router's; remove it", m)
		case taken:
			v.failTaken(other, "gateway", gateway, "network %q: macs: %s is already used by %s; remove it", gn.Network, m, other)
		}
		v.macs[key] = owner{"gateway", gateway}
	}
}
