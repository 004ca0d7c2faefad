package dhcp

import (
	"net/netip"

	"windtunnel/vrouter/model"
)

// Lease is the configuration that the workload of a port gets.
type Lease struct {
	MAC       model.MAC
	Addresses []netip.Prefix // of the port, each with the prefix length of its subnet
	Gateways  []netip.Addr   // at most one of each family
	Subnets   []netip.Prefix // of the network
	MTU       uint16
	Name      string // of the port
}

// address returns the port's first address of a family; zero: there is none.
func (l *Lease) address(family func(netip.Addr) bool) netip.Prefix {
	for _, p := range l.Addresses {
		if family(p.Addr()) {
			return p
		}
	}
	return netip.Prefix{}
}

// gateway returns the router's address of a family; zero: there is none.
func (l *Lease) gateway(family func(netip.Addr) bool) netip.Addr {
	for _, a := range l.Gateways {
		if family(a) {
			return a
		}
	}
	return netip.Addr{}
}
