package agent

import (
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/dhcp"
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
			MAC: port.MAC, Addresses: config.Addresses, Gateways: config.Gateways, Subnets: network.Subnets, MTU: v.MTU, Name: name,
		}}
	}
	if err := a.dhcp.Keep(ports); err != nil {
		a.log.Warn("some ports get no answer to DHCP; the next pass tries again", "error", err)
	}
}
