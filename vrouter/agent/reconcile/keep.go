package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/layout"
)

// keepPins recreates the data path if pins are missing. A link without a pin is
// detached when the agent ends. Without pinned maps, the next agent starts with
// empty maps.
func (p *Pass) keepPins() {
	r := p.r
	lost := r.Programs.Pins.Lost()
	if lost == 0 || p.waits(thePins) {
		return
	}
	began := time.Now()
	if err := r.Programs.Renew(); err != nil {
		p.fail(thePins, fmt.Errorf("recreate the %d missing pins in %s: %w", lost, r.config.PinsDir(), err))
		return
	}
	p.renewed, p.renewing = true, time.Since(began)
	p.mended = append(p.mended, fmt.Sprintf("%d pins in %s were missing", lost, r.config.PinsDir()))
}

// merge creates the device that makes the kernel merge VXLAN packets, or deletes it if this
// node accepts no VXLAN packets. It reports other devices that use the port.
func (p *Pass) merge() {
	if !p.compiled {
		p.merges = p.r.Last != nil && p.r.Last.merges
		return
	}
	port := layout.Network16(p.Tables.Settings.VXLANPort)
	var others []string
	for name, l := range p.r.devices.Known() {
		if v, is := l.(*netlink.Vxlan); is && port != 0 && v.Port == int(port) && name != netdev.GRODevice {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		p.block(theVXLANPort, fmt.Sprintf("VXLAN device %s uses UDP port %d, the port of this node's VXLAN tunnels: its packets from and to the other nodes are dropped; set settings.vxlan_port to another port, or remove vxlan from the nodes' encapsulations", strings.Join(others, ", "), port))
	}
	if p.r.config.VXLANGRO == config.Off || port == 0 {
		if err := netdev.RemoveMerging(p.r.space, p.Want.Node); err != nil {
			p.fail(Object{kindDevice, netdev.GRODevice}, err)
		}
		return
	}
	made, err := netdev.KeepMerging(p.r.space, p.Want.Node, port)
	if err != nil {
		// Another VXLAN device uses the UDP port, or the kernel lacks VXLAN.
		if last := p.r.Last; last == nil || last.merges {
			p.r.log.Warn("the kernel cannot merge VXLAN packets; XDP is used", "error", err)
		}
		return
	}
	p.merges = true
	if made && p.r.Last != nil && p.r.Last.merges && p.cause != asked {
		p.mended = append(p.mended, "device "+netdev.GRODevice+" was missing")
	}
}

// keepAccess makes the kernel forward and masquerade the packets of networks with node_access.
func (p *Pass) keepAccess() {
	last := p.r.Last
	if !p.compiled {
		if last != nil {
			p.access = last.access
		}
		return
	}
	for _, port := range p.Want.Ports {
		if n, _ := p.Want.Network(port.Network); port.Attach.Host && n.NodeAccess && p.Devices[port.Name] != nil {
			p.access.Add(n, port, p.Want.Ports)
		}
	}
	if p.waits(theAccess) || last != nil && p.isPartial() && !last.failed(theAccess) && last.access.Equal(p.access) {
		return
	}
	changed, err := netdev.KeepAccess(p.r.space, p.r.config, p.access)
	if err != nil {
		p.fail(theAccess, err)
		return
	}
	if changed && last != nil && p.cause != asked && last.access.Equal(p.access) {
		p.mended = append(p.mended, "rules or sysctls of node_access differed")
	}
}
