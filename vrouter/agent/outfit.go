package agent

import (
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// outfit is what a workload's device shall have.
type outfit struct {
	mac       model.MAC
	addresses []netip.Prefix // with their subnets' lengths: neighbours are on the link
	gateways  []netip.Addr   // at most one a family
	subnets   []netip.Prefix // the network's: addresses in them are given out by the overlay
	own       []netip.Prefix // what the workload may use beside its addresses
}

// outfitOf derives it from the desired state.
func outfitOf(n model.Network, p model.Port) outfit {
	o := outfit{mac: p.MAC, subnets: n.Subnets, own: p.AllowSources}
	for _, ip := range p.IPs {
		subnet, ok := subnetOf(n, ip)
		if !ok {
			o.addresses = append(o.addresses, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		o.addresses = append(o.addresses, netip.PrefixFrom(ip, subnet.Bits()))
		gateway := subnet.Masked().Addr().Next()
		has := slices.ContainsFunc(o.gateways, func(g netip.Addr) bool { return g.Is4() == gateway.Is4() })
		if n.Forwarding != model.L2 && !has {
			o.gateways = append(o.gateways, gateway)
		}
	}
	return o
}

func subnetOf(n model.Network, ip netip.Addr) (netip.Prefix, bool) {
	for _, s := range n.Subnets {
		if s.Contains(ip) {
			return s, true
		}
	}
	return netip.Prefix{}, false
}

// addressChanges compares the device's addresses with the wanted ones. An
// address that nobody gave the workload goes if it lies in the network's
// subnets: what is sent from it would be dropped as spoofed. All others (link
// local, what the workload routes for) are its own affair.
func (o outfit) addressChanges(have []netip.Prefix) (add, remove []netip.Prefix) {
	for _, a := range have {
		if slices.Contains(o.addresses, a) || o.mayKeep(a.Addr()) {
			continue
		}
		remove = append(remove, a)
	}
	for _, a := range o.addresses {
		if !slices.Contains(have, a) {
			add = append(add, a)
		}
	}
	return add, remove
}

func (o outfit) mayKeep(a netip.Addr) bool {
	within := func(s netip.Prefix) bool { return s.Contains(a) }
	wanted := slices.ContainsFunc(o.addresses, func(p netip.Prefix) bool { return p.Addr() == a })
	return !wanted && (slices.ContainsFunc(o.own, within) || !slices.ContainsFunc(o.subnets, within))
}
