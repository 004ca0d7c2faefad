package reconcile

import (
	"maps"
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
// address. The IP address may have belonged to a port that is now deleted. If the
// forwarding of a network changes to l3, all its IP addresses get the router's MAC address. Each node announces the
// change when its own tables have it. An announcement by the port could reach nodes with older tables, which
// would drop it as forged.
func (p *Pass) announce() {
	last := p.r.Last
	if p.cause != asked || !p.compiled || last == nil || last.Want == nil {
		return
	}
	if p.r.former == nil || len(p.r.former) > maxFormer {
		p.r.former = map[networkAddress]model.MAC{}
	}
	bridged, bridges := bridging(last.Want), bridging(p.Want)
	var changed []*model.CompactPort
	model.DiffPorts(last.Want.All, p.Want.All, func(was, is *model.CompactPort) {
		if was != nil && bridged[was.Network] {
			p.remember(was)
		}
		if is != nil {
			changed = append(changed, is)
		}
	})
	if maps.DeleteFunc(bridged, func(network string, _ bool) bool { return bridges[network] }); len(bridged) > 0 {
		for _, port := range p.Want.All {
			if bridged[port.Network] {
				p.remember(port)
				changed = append(changed, port)
			}
		}
	}
	var all []netdev.Announcement
	for _, port := range changed {
		is := model.RouterMAC
		if bridges[port.Network] {
			is = port.MAC
		}
		for _, a := range port.IPs {
			at := networkAddress{port.Network, a}
			mac, had := p.r.former[at]
			delete(p.r.former, at)
			if !had || mac == is {
				continue
			}
			if to := p.others(port); len(to) > 0 {
				all = append(all, netdev.Announcement{Station: netdev.Station{Address: a, MAC: is}, To: to})
			}
		}
	}
	if len(all) == 0 {
		return
	}
	if err := netdev.Announce(p.r.space, all); err != nil {
		p.r.log.Debug("workloads may use former MAC addresses for a time", "error", err)
	}
}

// remember stores the MAC address of a port for each of its IP addresses, because workloads may have these pairs in
// their neighbour tables.
func (p *Pass) remember(port *model.CompactPort) {
	for _, a := range port.IPs {
		p.r.former[networkAddress{port.Network, a}] = port.MAC
	}
}

// bridging returns the networks that bridge, by name.
func bridging(d *Desired) map[string]bool {
	all := map[string]bool{}
	for i := range d.State.Networks {
		if n := &d.State.Networks[i]; n.Bridges() {
			all[n.Name] = true
		}
	}
	return all
}

// others returns the device indexes of the other ports of this node that are in the port's network.
func (p *Pass) others(port *model.CompactPort) (devices []int) {
	for _, o := range p.Want.On(port.Network, p.Want.Node) {
		if d := p.Devices[o.Name]; d != nil && o != port {
			devices = append(devices, d.Index())
		}
	}
	return devices
}
