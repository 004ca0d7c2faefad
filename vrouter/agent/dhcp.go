package agent

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/dhcp"
	"windtunnel/vrouter/dns"
	"windtunnel/vrouter/layout"
)

// keepLeases tells the DHCP server about the ports whose packets the programs leave to it.
func (a *agent) keepLeases(p *reconcile.Pass) {
	if a.dhcp == nil {
		return
	}
	ports := map[string]dhcp.Port{}
	for name, d := range p.Devices {
		v := p.Tables.Vifs[uint32(d.Index())]
		if v.Flags&layout.VifAgent == 0 {
			continue
		}
		port, _ := p.Want.Port(name)
		network, _ := p.Want.Network(port.Network)
		config := netdev.DeviceConfigOf(network, port)
		ports[name] = dhcp.Port{Name: name, Ifindex: d.Index(), Lease: dhcp.Lease{
			MAC: port.MAC, Addresses: config.Addresses, Gateways: config.Gateways, Subnets: network.Subnets, MTU: v.MTU,
			Name: name, Network: network.Name, DHCP: network.DHCP, DNS: network.DNS,
		}}
	}
	if err := a.dhcp.Keep(ports); err != nil {
		a.log.Warn("some ports get no answer to DHCP; the next pass tries again", "error", err)
	}
}

// hostname is the name of a port in its network, in lower case.
type hostname struct{ network, port string }

// hostsOf returns the addresses of the ports of all networks on the node.
func hostsOf(want *reconcile.Desired) map[hostname][]netip.Addr {
	all := make(map[hostname][]netip.Addr, len(want.All))
	for _, p := range want.All {
		all[hostname{p.Network, strings.ToLower(p.Name)}] = p.IPs
	}
	return all
}

// answerDNS returns the answer to a DNS query of a port, of at most size bytes; nil: none.
func (a *agent) answerDNS(l *dhcp.Lease, query []byte, size int) []byte {
	v := a.snapshot.Load()
	if v == nil {
		return nil
	}
	f := dns.Forwarder{Resolvers: a.config.Resolvers, Dial: a.dialResolver}
	return f.Answer(context.Background(), query, dns.Zone{Name: l.Network, Port: func(name string) ([]netip.Addr, bool) {
		addresses, ok := v.hosts()[hostname{l.Network, name}]
		return addresses, ok
	}}, size)
}

// dialResolver opens a UDP socket in the node's namespace.
func (a *agent) dialResolver(_ context.Context, resolver netip.Addr) (conn net.Conn, err error) {
	err = a.space.Do(func() error {
		conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(resolver, 53)))
		return err
	})
	return conn, err
}
