package reconcile

import "windtunnel/vrouter/agent/netdev"

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
