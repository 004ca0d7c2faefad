package dhcp

import (
	"net"
	"net/netip"

	"windtunnel/vrouter/model"
)

// Lease is the configuration that the workload of a port gets.
type Lease struct {
	MAC       model.MAC      // of the port
	Addresses []netip.Prefix // of the port, each with the prefix length of its subnet
	Gateways  []netip.Addr   // at most one of each family
	Subnets   []netip.Prefix // of the network
	MTU       uint16
	Name      string       // of the port
	Network   string       // name of the network, and domain name of the workload
	DHCP      bool         // answer DHCP, and send router advertisements
	DNS       []netip.Addr // addresses at which the server answers DNS
}

// dnsServers returns the DNS addresses of a family.
func (l *Lease) dnsServers(family func(netip.Addr) bool) (all []net.IP) {
	for _, a := range l.DNS {
		if family(a) {
			all = append(all, a.AsSlice())
		}
	}
	return all
}

// isRouter reports whether the server is the workload's IPv6 router and DHCPv6 server.
func (l *Lease) isRouter() bool { return l.DHCP && l.address(netip.Addr.Is6).IsValid() }

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
