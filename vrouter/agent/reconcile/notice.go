package reconcile

import (
	"net"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// Notice records changes in the kernel for the next pass because of an event.
func (r *Reconciler) Notice(e netdev.Event) {
	if r.noticed == nil {
		r.noticed = &netdev.Event{}
	}
	r.noticed.Add(e)
}

// HasNoticed reports whether changes are recorded that no pass has handled.
func (r *Reconciler) HasNoticed() bool { return r.noticed != nil }

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

// isSame reports whether a port's device needs no check. It needs none if its settings are those of
// the last pass and it has carrier, because then the workload's end is up. An existing device
// (attach.device) needs none without carrier either, if it had none before.
func isSame(port model.Port, was, is netlink.Link) bool {
	a, b := was.Attrs(), is.Attrs()
	return was == is || a.MTU == b.MTU && a.ParentIndex == b.ParentIndex && a.NetNsID == b.NetNsID &&
		a.MasterIndex == b.MasterIndex && b.Flags&net.FlagUp != 0 &&
		(b.OperState == netlink.OperUp || port.Attach.Device != "" && a.OperState == b.OperState)
}
