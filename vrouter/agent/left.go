package agent

import (
	"maps"
	"net"
	"slices"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
)

// A pass that somebody waits for looks only at what is asked for: with thousands
// of ports on a node, to look at each of them for each change takes longer than
// the change. The pass that looks for drift looks at everything.

// asLeft is a port's device if the last pass left all of it as it shall be, and
// nothing that can be seen from the node says otherwise; else nil.
func (p *pass) asLeft(port model.Port) *device {
	last := p.a.last
	if p.cause != asked || last == nil || !last.compiled || !last.whole[port.Name] {
		return nil
	}
	was, known := last.want.port(port.Name)
	d := last.devices[port.Name]
	if !known || d == nil || !was.Equal(port) || !p.sameOutfit(port.Network) {
		return nil
	}
	had := d.link.Attrs()
	l := p.wire.here[had.Name]
	if l == nil || l.Attrs().Index != had.Index || l.Attrs().Alias != had.Alias || l.Attrs().Flags&net.FlagUp == 0 {
		return nil
	}
	return deviceOf(l, port)
}

// sameOutfit tells whether a network gives its workloads what it gave them before.
func (p *pass) sameOutfit(network string) bool {
	now, there := p.want.network(network)
	was, known := p.a.last.want.network(network)
	return there && known && now.Forwarding == was.Forwarding && slices.Equal(now.Subnets, was.Subnets)
}

// listAttached finds the programs on the node's devices, as the kernel has them;
// in a pass that somebody waits for, as the last one left them.
func (p *pass) listAttached() {
	p.attached = map[int]datapath.Attachment{}
	if last := p.a.last; p.cause == asked && last != nil && last.attached != nil && len(last.problems) == 0 && !p.renewed {
		here := make(map[int]bool, len(p.wire.here))
		for _, l := range p.wire.here {
			here[l.Attrs().Index] = true
		}
		maps.Copy(p.attached, last.attached)
		maps.DeleteFunc(p.attached, func(index int, _ datapath.Attachment) bool { return !here[index] })
		return
	}
	all, err := p.a.plane().Attached()
	if err != nil {
		p.fail("", err)
	}
	for _, a := range all {
		p.attached[a.Ifindex] = a
	}
}
