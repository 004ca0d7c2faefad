package netdev

import (
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// DeviceConfig is the desired configuration of a workload's device.
type DeviceConfig struct {
	mac       model.MAC
	Addresses []netip.Prefix // the port's addresses, each with the prefix length of its subnet
	Gateways  []netip.Addr   // at most one per family
	subnets   []netip.Prefix // the network's subnets; the overlay allocates their addresses
	own       []netip.Prefix // the port's allow_sources: other prefixes that the workload may send from
}

// DeviceConfigOf derives a port's device configuration from the desired state.
func DeviceConfigOf(n model.Network, p model.Port) DeviceConfig {
	o := DeviceConfig{mac: p.MAC, subnets: n.Subnets, own: p.AllowSources}
	for _, ip := range p.IPs {
		subnet, ok := n.Subnet(ip)
		if !ok {
			o.Addresses = append(o.Addresses, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		o.Addresses = append(o.Addresses, netip.PrefixFrom(ip, subnet.Bits()))
		gateway := model.GatewayAddress(subnet)
		has := slices.ContainsFunc(o.Gateways, func(g netip.Addr) bool { return g.Is4() == gateway.Is4() })
		if n.Forwarding != model.L2 && !has {
			o.Gateways = append(o.Gateways, gateway)
		}
	}
	return o
}

// addressChanges compares the device's addresses with the desired ones. It removes
// other addresses in the network's subnets: packets from them would be dropped as
// spoofed. It keeps all other addresses, such as link-local ones.
func (o DeviceConfig) addressChanges(have []netip.Prefix) (add, remove []netip.Prefix) {
	for _, a := range have {
		if slices.Contains(o.Addresses, a) || o.mayKeep(a.Addr()) {
			continue
		}
		remove = append(remove, a)
	}
	for _, a := range o.Addresses {
		if !slices.Contains(have, a) {
			add = append(add, a)
		}
	}
	return add, remove
}

func (o DeviceConfig) mayKeep(a netip.Addr) bool {
	within := func(s netip.Prefix) bool { return s.Contains(a) }
	wanted := slices.ContainsFunc(o.Addresses, func(p netip.Prefix) bool { return p.Addr() == a })
	return !wanted && (slices.ContainsFunc(o.own, within) || !slices.ContainsFunc(o.subnets, within))
}
