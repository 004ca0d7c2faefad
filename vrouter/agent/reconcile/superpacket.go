package reconcile

import (
	"fmt"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
)

// judgeSuperpackets decides whether superpackets may exceed 64 KiB (BIG TCP). If a fabric device or
// a port's device cannot pass them, the kernel cuts them there into single packets, which takes more
// CPU time than superpackets of 64 KiB that the NIC cuts.
func (p *Pass) judgeSuperpackets() {
	last := p.r.Last
	if !p.compiled {
		p.wire.Big = last != nil && p.Small == ""
		return
	}
	if !p.isPartial() {
		why, err := netdev.ForwardingRefusesBig(p.r.devices, p.Want.Node, p.wire.Fabric)
		if p.forwarding = why; err != nil {
			p.forwarding = err.Error()
		}
	}
	p.Small = p.refusesBig()
	p.wire.Big = p.Small == ""
	if p.r.config.BigTCP == config.Auto && (last == nil || last.Small != p.Small) {
		p.r.log.Info("superpackets above 64 KiB", "allowed", p.wire.Big, "why_not", p.Small)
	}
}

func (p *Pass) refusesBig() string {
	if p.r.config.BigTCP == config.Off {
		return "big_tcp is off"
	}
	if name := p.Tables.Encapsulating(); name != "" {
		return fmt.Sprintf("the nexthop %q adds or replaces headers", name)
	}
	for _, f := range p.Fabric {
		if why := netdev.FabricRefusesBig(f.Link); why != "" {
			return why
		}
	}
	for _, port := range p.Want.Ports {
		if d := p.Devices[port.Name]; d != nil && port.Attach.Device != "" && !netdev.PassesBig(d.Link) {
			return fmt.Sprintf("device %s of port %s has smaller maximum sizes", port.Attach.Device, port.Name)
		}
	}
	return p.forwarding
}

// lowerFabric sets the sizes of the fabric devices back if superpackets must not exceed 64 KiB.
func (p *Pass) lowerFabric() {
	if p.compiled && p.Small != "" {
		p.resizeFabric(false)
	}
}

// raiseFabric sets the sizes of the fabric devices to BigSuperpacket if this is allowed.
func (p *Pass) raiseFabric() {
	if p.Small == "" && p.compiled {
		p.resizeFabric(true)
	}
}

func (p *Pass) resizeFabric(big bool) {
	for _, f := range p.Fabric {
		changed, err := p.r.space.SetSuperpackets(f.Link, big)
		if err != nil {
			p.fail(Object{kindDevice, f.Link.Attrs().Name}, err)
		}
		if changed {
			p.r.log.Info("maximum size of superpackets set", "device", f.Link.Attrs().Name, "bytes", f.Link.Attrs().GSOMaxSize)
		}
	}
}
