package reconcile

import (
	"net"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/netdev"
)

// Notice records changes in the kernel for the next pass because of an event.
func (r *Reconciler) Notice(e netdev.Event) {
	if r.noticed == nil {
		r.noticed = &netdev.Event{}
	}
	r.noticed.Add(e)
}

// isNarrow reports whether the pass is because of an event that concerns no more than devices
// of ports. Such a pass looks only at these ports. With thousands of ports, each new device would
// otherwise make the agent look at all ports.
func (p *Pass) isNarrow() bool {
	noticed, last := p.r.noticed, p.r.Last
	if p.cause != Noticing || noticed == nil || noticed.Other || last == nil || !last.compiled {
		return false
	}
	for _, f := range last.Fabric {
		if noticed.Links[f.Link.Attrs().Index] {
			return false
		}
	}
	return true
}

// lookAtNoticed looks up the devices that events have named.
func (p *Pass) lookAtNoticed() error {
	for index := range p.r.noticed.Links {
		if _, err := p.r.devices.Renew(index); err != nil {
			return err
		}
	}
	return nil
}

// sameDevice reports whether a device is as it was, or has the state of a complete port: it has
// carrier, so the workload's end is up, too.
func sameDevice(was, is *netlink.LinkAttrs) bool {
	return is.Index == was.Index && is.Alias == was.Alias && is.MTU == was.MTU &&
		is.ParentIndex == was.ParentIndex && is.NetNsID == was.NetNsID && is.MasterIndex == was.MasterIndex &&
		is.Flags&net.FlagUp != 0 && (is.OperState == netlink.OperUp || is.OperState == was.OperState)
}
