package agent

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/dhcp"
	"windtunnel/vrouter/dns"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

func (a *agent) newDHCPServer() *dhcp.Server {
	lease := func(port string) *dhcp.Lease { return a.snapshot.Load().lease(port) }
	return dhcp.New(dhcp.Config{InNode: a.space.Do, Lease: lease, DNS: a.answerDNS, Log: a.log})
}

// serveClients makes the DHCP server answer the ports of networks with DHCP or DNS.
func (a *agent) serveClients(p *reconcile.Pass) {
	if a.dhcp == nil {
		return
	}
	ifindexes := map[string]int{}
	if slices.ContainsFunc(p.Want.State.Networks, model.Network.HasServer) {
		for name, d := range p.Devices {
			if p.Tables.Vifs[uint32(d.Index())].Flags&layout.VifAgent != 0 {
				ifindexes[name] = d.Index()
			}
		}
	}
	if err := a.dhcp.Serve(ifindexes); err != nil {
		a.log.Warn("some ports get no answers to DHCP; the next pass tries again", "error", err)
	}
}

// leaseOf returns the configuration of the workload of a port; nil: the server does not answer the port.
func leaseOf(p *reconcile.Pass, name string) *dhcp.Lease {
	d := p.Devices[name]
	port, ok := p.Want.Port(name)
	if d == nil || !ok {
		return nil
	}
	network, _ := p.Want.Network(port.Network)
	config := netdev.DeviceConfigOf(network, port)
	return &dhcp.Lease{
		MAC: port.MAC, Addresses: config.Addresses, Gateways: config.Gateways, Subnets: network.Subnets, MTU: p.Tables.Vifs[uint32(d.Index())].MTU,
		Name: name, Network: network.Name, DHCP: network.DHCP, DNS: network.DNS,
	}
}

// hostname is the name of a port in its network, in lower case.
type hostname struct{ network, port string }

// hostsOf returns the addresses of all ports, on all nodes, of the networks that the node has.
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
	f := dns.Forwarder{Resolvers: a.config.Resolvers, Dial: func(_ context.Context, resolver netip.Addr) (net.Conn, error) {
		return a.dialUDP(netip.AddrPortFrom(resolver, 53))
	}}
	return f.Answer(context.Background(), query, dns.Zone{Name: l.Network, Port: func(name string) ([]netip.Addr, bool) {
		addresses, ok := v.hosts()[hostname{l.Network, name}]
		return addresses, ok
	}}, size)
}
