package model

import (
	"net/netip"
	"slices"
)

// routeName is the name of a route in error messages.
func routeName(r Route) string { return r.Network + " " + r.Prefix.String() }

func (v *validation) checkRoutes() {
	for _, r := range v.s.Routes {
		name := routeName(r)
		n := v.networks[r.Network]
		if n == nil {
			v.fail("route", name, "network: %s", missing(v, "network", r.Network, v.networks))
			continue
		}
		if !n.Routes() {
			v.fail("route", name, "network: %q only bridges; make it l3 or l2l3", r.Network)
		}
		if wrong := notCanonical(r.Prefix); wrong != "" {
			v.fail("route", name, "prefix: %s", wrong)
		} else {
			v.claimPrefix("route", name, "prefix: ", r.Network, r.Prefix)
		}
		switch {
		case r.Discard && len(r.Via) > 0:
			v.fail("route", name, "has both via and discard; keep one")
		case !r.Discard && len(r.Via) == 0:
			v.fail("route", name, "via: needs a port or a gateway, or set discard")
		case len(r.Via) > MaxECMP:
			v.fail("route", name, "via: has %d next hops, at most %d are allowed; remove some", len(r.Via), MaxECMP)
		}
		for _, w := range r.Via {
			v.checkVia(name, r, w)
		}
	}
}

// claimPrefix refuses a prefix that another object already has.
func (v *validation) claimPrefix(object, name, field, network string, p netip.Prefix) {
	key := networkKey[netip.Prefix]{network, p}
	other, taken := v.prefixes[key]
	if !taken && p.IsSingleIP() {
		other, taken = v.holderOf(network, p.Addr())
	}
	if taken {
		v.failTaken(other, object, name, "%s%s already leads to %s; keep one, or list all next hops in the via of one route", field, other, p)
		return
	}
	v.prefixes[key] = owner{object, name}
}

// holderOf returns the port or the router that has an address; false: none.
func (v *validation) holderOf(network string, a netip.Addr) (owner, bool) {
	if port, taken := v.ips[networkKey[netip.Addr]{network, a}]; taken {
		return owner{"port", port}, true
	}
	n := v.networks[network]
	if slices.Contains(n.DNS, a) {
		return owner{object: "the DNS address of the network"}, true
	}
	if s, ok := n.Subnet(a); ok && n.Routes() && notCanonical(s) == "" && a == GatewayAddress(s) {
		return owner{object: "the router of subnet " + s.String()}, true
	}
	return owner{}, false
}

func (v *validation) checkVia(name string, r Route, w Via) {
	switch {
	case (w.Port == "") == (w.Gateway == ""):
		v.fail("route", name, "via: each next hop must be either a port or a gateway")
	case w.Port != "":
		if p := v.ports[w.Port]; p == nil {
			v.fail("route", name, "via: %s", missing(v, "port", w.Port, v.ports))
		} else if p.Network != r.Network {
			v.fail("route", name, "via: port %q is in network %q; choose one of network %q", w.Port, p.Network, r.Network)
		}
	default:
		v.checkViaGateway(name, r.Network, w.Gateway)
	}
}

func (v *validation) checkViaGateway(name, network, gateway string) {
	g := v.gateways[gateway]
	if g == nil {
		v.fail("route", name, "via: %s", missing(v, "gateway", gateway, v.gateways))
		return
	}
	gn, serves := g.Network(network)
	switch {
	case !serves:
		v.fail("route", name, "via: gateway %q does not serve network %q; add it to the gateway's networks", gateway, network)
	case g.Encapsulation != VXLAN && !isLabel(gn.Label) && len(gn.Prefixes) == 0: // with prefixes, checkLabels reports it
		v.fail("route", name, "via: gateway %q has label %d for network %q, which is not from %d to %d; it needs the one that it expects on IP packets", gateway, gn.Label, network, FirstLabel, MaxLabel)
	}
}

func isLabel(l uint32) bool { return l >= FirstLabel && l <= MaxLabel }
