package reconcile

import (
	"net"
	"slices"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// A pass for a request checks only the changed ports: with thousands of ports,
// checking all of them takes longer than the change. The pass that checks for drift
// checks everything.

// asLeft returns a port's device if the last pass configured it completely and the
// node's end of the pair has not changed since then; else nil.
func (p *Pass) asLeft(port model.Port) *netdev.Device {
	last := p.r.Last
	if p.cause != asked || last == nil || !last.compiled || !last.whole[port.Name] {
		return nil
	}
	was, known := last.Want.Port(port.Name)
	d := last.Devices[port.Name]
	if !known || d == nil || !was.Equal(port) || !p.sameNetworkConfig(port.Network) {
		return nil
	}
	had := d.Link.Attrs()
	l := p.wire.Here[had.Name]
	if l == nil || l.Attrs().Index != had.Index || l.Attrs().Alias != had.Alias || l.Attrs().Flags&net.FlagUp == 0 {
		return nil
	}
	return netdev.DeviceOf(l, port)
}

// sameNetworkConfig reports whether a network's workloads have the same
// configuration as in the last pass.
func (p *Pass) sameNetworkConfig(network string) bool {
	now, there := p.Want.Network(network)
	was, known := p.r.Last.Want.Network(network)
	return there && known && now.Forwarding == was.Forwarding && slices.Equal(now.Subnets, was.Subnets)
}
