package reconcile

import (
	"slices"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// unchanged reports whether a port's desired state is the same as in the last pass. It
// returns the port's device of that pass; nil: the device no longer exists, or is another one.
func (p *Pass) unchanged(port model.Port) (*netdev.Device, bool) {
	if !p.isPartial() || !p.r.Last.compiled {
		return nil, false
	}
	was, known := p.r.Last.Want.Port(port.Name)
	if !known || !was.Equal(port) || !p.sameNetworkConfig(port.Network) {
		return nil, false
	}
	d := p.r.Last.Devices[port.Name]
	if d == nil {
		return nil, true
	}
	had := d.Link.Attrs()
	l := p.r.devices.Known()[had.Name]
	if l == nil || l.Attrs().Index != had.Index || l.Attrs().Alias != had.Alias || p.deleted[had.Index] {
		return nil, true
	}
	return netdev.DeviceOf(l, port), true
}

// isWhole reports whether the last pass configured a port completely, and its device d, which
// can be nil, has not changed since.
func (p *Pass) isWhole(port model.Port, d *netdev.Device) bool {
	last := p.r.Last
	return d != nil && last.whole[port.Name] && !last.failed(portObject(port.Name)) && isSame(port, last.Devices[port.Name].Link, d.Link)
}

// sameNetworkConfig reports whether a network's workloads have the same
// configuration as in the last pass.
func (p *Pass) sameNetworkConfig(network string) bool {
	now, there := p.Want.Network(network)
	was, known := p.r.Last.Want.Network(network)
	return there && known && now.Forwarding == was.Forwarding && slices.Equal(now.Subnets, was.Subnets)
}
