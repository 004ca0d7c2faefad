package reconcile

import (
	"net/netip"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// networkAddress is an address in a network that bridges.
type networkAddress struct {
	network string
	address netip.Addr
}

// maxFormer is the maximum number of addresses in Reconciler.former. Above it, all are forgotten.
const maxFormer = 1 << 16

// announce tells this node's workloads in bridged networks which IP addresses have a new MAC
// address, also if another port had the IP address before and was deleted. Each node announces the change when
// its own tables have it. An announcement by the port could reach nodes with older tables, which
// would drop it as forged.
func (p *Pass) announce() {
	last := p.r.Last
	if p.cause != asked || !p.compiled || last == nil || last.Want == nil {
		return
	}
	if p.r.former == nil || len(p.r.former) > maxFormer {
		p.r.former = map[networkAddress]model.MAC{}
	}
	var changed []*model.CompactPort
	model.DiffPorts(last.Want.All, p.Want.All, func(was, is *model.CompactPort) {
		if was != nil {
			if n, _ := last.Want.Network(was.Network); n.Bridges() {
				for _, a := range was.IPs {
					p.r.former[networkAddress{n.Name, a}] = was.MAC
				}
			}
		}
		if is != nil {
			changed = append(changed, is)
		}
	})
	for _, port := range changed {
		for _, a := range port.IPs {
			at := networkAddress{port.Network, a}
			mac, had := p.r.former[at]
			delete(p.r.former, at)
			if had && mac != port.MAC {
				p.announceTo(p.Want.On(port.Network, p.Want.Node), port, a)
			}
		}
	}
}

// announceTo tells the workloads of ports the MAC address of an address of another port.
func (p *Pass) announceTo(ports []*model.CompactPort, of *model.CompactPort, a netip.Addr) {
	var devices []int
	for _, port := range ports {
		if d := p.Devices[port.Name]; d != nil && port != of {
			devices = append(devices, d.Index())
		}
	}
	if len(devices) == 0 {
		return
	}
	if err := netdev.Announce(p.r.space, devices, netdev.Station{Address: a, MAC: of.MAC}); err != nil {
		p.r.log.Debug("workloads may use the former MAC address of a port for a time", "port", of.Name, "error", err)
	}
}
