package reconcile

import (
	"slices"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// fabric finds the underlay devices of a node. missing has one text for each device that was not
// found. If partial is true and the last pass found all devices of the same node, fabric looks up
// only these devices. It does not list addresses: the kernel reports their changes, and a list of
// the addresses of thousands of devices takes longer than the rest of the pass.
func (r *Reconciler) fabric(devices *netdev.Devices, self model.Node, partial bool) (links []netlink.Link, missing []string, err error) {
	if last := r.Last; partial && last.hasUnderlayOf(self) {
		for _, f := range last.Fabric {
			l, err := devices.Index(f.Link.Attrs().Index)
			if err != nil {
				return nil, nil, err
			}
			if l != nil {
				links = append(links, l)
			}
		}
		if len(links) == len(last.Fabric) {
			return links, nil, nil
		}
	}
	return netdev.FabricDevices(devices, r.config.Fabric, self.Underlay)
}

// hasUnderlayOf reports whether the pass, which can be nil, found the underlay devices of a node
// with the same underlay addresses and encapsulations.
func (p *Pass) hasUnderlayOf(self model.Node) bool {
	return p != nil && !p.failed(theUnderlay) && !p.failed(theDevices) && p.node.Name == self.Name &&
		slices.Equal(p.node.Underlay, self.Underlay) && slices.Equal(p.node.Encapsulations, self.Encapsulations)
}
