package reconcile

import (
	"net"
	"slices"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// scope says which objects a pass is about. All other objects are as the last pass left them.
type scope struct {
	cause   Cause
	narrow  bool            // a pass because of an event that concerns no other known device (isNarrow)
	whole   map[string]bool // ports that were as desired in a pass for the same desired state
	deleted map[int]bool    // ifindexes of devices that were deleted since the last pass
	left    map[string]bool // ports whose devices have not changed since the last pass (isWhole)
	reused  bool            // Compiled is that of the last pass
	resumed bool            // attached is the list of the last pass. In that pass the devices of left ports had the program
	renewed bool            // the data path was recreated, because pins were missing
}

// Cause is the reason for a pass.
type Cause string

// Causes of a pass.
const (
	Starting Cause = "start"
	asked    Cause = "request" // the desired state changed
	Noticing Cause = "event"   // the kernel reported a change
	Looking  Cause = "timer"   // to find drift
	Retrying Cause = "retry"   // the next attempt for an object is due
)

// isPartial reports whether the pass checks only the ports that changed or failed: with
// thousands of ports, checking all of them takes longer than the change.
func (p *Pass) isPartial() bool {
	return (p.cause == asked || p.cause == Retrying || p.narrow) && p.r.Last != nil
}

// Notice records changes in the kernel for the next pass because of an event.
func (r *Reconciler) Notice(e netdev.Event) {
	if r.noticed == nil {
		r.noticed = &netdev.Event{}
	}
	r.noticed.Add(e)
}

// HasNoticed reports whether changes are recorded that no pass has handled.
func (r *Reconciler) HasNoticed() bool { return r.noticed != nil }

// lookAtNoticed looks up the devices that events have named, and forgets those that were deleted.
func (p *Pass) lookAtNoticed() error {
	if p.r.noticed == nil {
		return nil
	}
	for _, f := range p.r.Last.Fabric {
		if _, is := p.r.noticed.Links[f.Link.Attrs().Index]; is { // a deleted one leaves the cache below, so isNarrow would not see it
			p.r.noticed.Other = true
		}
	}
	for index, l := range p.r.noticed.Links {
		if l&netdev.LinkDeleted != 0 {
			p.r.devices.Forget(index)
			delete(p.r.Last.attached, index)
			p.deleted[index] = true
		}
		if l != 0 {
			if _, err := p.r.devices.Renew(index); err != nil {
				return err
			}
		}
		p.r.noticed.Links[index] = 0 // it is looked up, and isNarrow still sees the index
	}
	return nil
}

// isNarrow reports whether all events before this pass concern devices of ports, or devices that
// are not in the cache, because they are new or deleted. Such a pass checks only these ports. With
// thousands of ports, each new port would otherwise make the agent check all ports.
func (p *Pass) isNarrow() bool {
	noticed, last := p.r.noticed, p.r.Last
	if p.cause != Noticing || noticed == nil || noticed.Other || last == nil || !last.compiled {
		return false
	}
	ours := make(map[int]bool, len(last.Devices))
	for _, d := range last.Devices {
		ours[d.Index()] = true
	}
	for index := range noticed.Links {
		if !ours[index] && p.r.devices.Has(index) {
			return false
		}
	}
	return true
}

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

// isSame reports whether a port's device needs no check. It needs none if its settings are those of
// the last pass and it has carrier, because then the workload's end is up. An existing device
// (attach.device) needs none without carrier either, if it had none before.
func isSame(port model.Port, was, is netlink.Link) bool {
	a, b := was.Attrs(), is.Attrs()
	return was == is || a.MTU == b.MTU && a.ParentIndex == b.ParentIndex && a.NetNsID == b.NetNsID &&
		a.MasterIndex == b.MasterIndex && b.Flags&net.FlagUp != 0 &&
		(b.OperState == netlink.OperUp || port.Attach.Device != "" && a.OperState == b.OperState)
}
