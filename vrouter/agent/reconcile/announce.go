package reconcile

import (
	"slices"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// announce tells this node's workloads in networks that bridge which addresses have another MAC
// address since the last pass. Each node does so when its tables have the change. If the port
// announced it instead, other nodes could still refuse the announcement as forged.
func (p *Pass) announce() {
	last := p.r.Last
	if p.cause != asked || !p.compiled || last == nil || last.Want == nil {
		return
	}
	model.DiffPorts(last.Want.All, p.Want.All, func(was, is *model.Port) {
		if is == nil {
			return
		}
		n, _ := p.Want.Network(is.Network)
		if _, known := last.Want.Network(n.Name); !known || !n.Bridges() {
			return
		}
		var devices []int
		for _, local := range p.Want.On(n.Name, p.Want.Node) {
			if d := p.Devices[local.Name]; d != nil && local != is {
				devices = append(devices, d.Index())
			}
		}
		for _, a := range is.IPs {
			if len(devices) == 0 || was != nil && was.MAC == is.MAC && slices.Contains(was.IPs, a) {
				continue
			}
			if err := netdev.Announce(p.r.space, devices, netdev.Station{Address: a, MAC: is.MAC}); err != nil {
				p.r.log.Debug("workloads may use the former MAC address of a port for a time", "port", is.Name, "error", err)
			}
		}
	})
}
