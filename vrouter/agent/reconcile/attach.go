package reconcile

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
)

// FabricDevice is an underlay device with its attached programs.
type FabricDevice struct {
	Link netlink.Link
	datapath.Fabric
	NoXDP   string // reason why XDP must not be attached; empty: it may be attached
	guarded bool   // fabric_out drops tunnel packets that the programs did not send
}

const (
	many     = 8 // number of devices above which attach uses AttachVifNow also for devices that are up
	switches = 2 // number of devices that a check for drift moves from a filter to a tcx link, which takes 10 ms and more for each
)

// attach attaches the programs to devices that lack them.
func (p *Pass) attach() {
	p.listAttached()
	for i := range p.Fabric {
		p.attachFabric(&p.Fabric[i], p.attached)
	}
	var bare []string // ports whose devices lack the program
	for name, d := range p.Devices {
		if p.resumed && p.left[name] {
			continue
		}
		has, ok := p.attached[d.Index()]
		if !ok || has.Kind != datapath.KindVif || !has.Current || d.IsNetkit() && !has.Netkit {
			if !p.failed(portObject(name)) { // a port that waits for its next attempt has failed, too
				bare = append(bare, name)
			}
		}
	}
	slices.Sort(bare)
	for _, name := range bare {
		index, netkit := p.Devices[name].Index(), p.Devices[name].IsNetkit()
		attach := p.r.Programs.Plane().AttachVif
		if len(bare) > many || p.Devices[name].Link.Attrs().Flags&net.FlagUp == 0 {
			attach = p.r.Programs.Plane().AttachVifNow
		}
		err := attach(index)
		if err == nil && netkit {
			err = p.r.Programs.Plane().AttachNetkit(index)
		}
		if err != nil {
			p.fail(portObject(name), err)
			continue
		}
		p.attached[index] = datapath.Attachment{Ifindex: index, Kind: datapath.KindVif, Current: true, Netkit: netkit}
		p.changed(name, "programs attached to "+p.Devices[name].Link.Attrs().Name)
	}
	if p.cause == Looking && p.r.config.TCX != config.Off {
		p.switchToTCX()
	}
	p.guard()
}

// switchToTCX replaces classic filters by tcx links, which cost less per packet. An error is
// only logged, because the filter works.
func (p *Pass) switchToTCX() {
	left := switches
	for name, d := range p.Devices {
		has := p.attached[d.Index()]
		if left == 0 || !has.Current || has.Kind != datapath.KindVif || !strings.HasSuffix(has.Mode, "clsact") {
			continue
		}
		left--
		if err := p.r.Programs.Plane().AttachVif(d.Index()); err != nil {
			p.r.log.Debug("the program stays attached by a filter", "port", name, "error", err)
		}
	}
}

// guard attaches fabric_out to the fabric devices. fabric_out drops tunnel packets
// without the programs' mark. The programs of an older agent do not set the mark. So
// guard does nothing until every port has the current program.
func (p *Pass) guard() {
	for name, d := range p.Devices {
		if !(p.resumed && p.left[name]) && !p.attached[d.Index()].Current {
			return
		}
	}
	for i := range p.Fabric {
		f := &p.Fabric[i]
		index, name := f.Link.Attrs().Index, f.Link.Attrs().Name
		has := p.attached[index]
		if f.guarded = has.Guarded && has.Current; f.guarded {
			continue
		}
		if p.waits(Object{kindDevice, name}) {
			continue
		}
		if err := p.r.Programs.Plane().GuardFabric(index); err != nil {
			p.fail(Object{kindDevice, name}, fmt.Errorf("guard fabric device %s: %w", name, err))
			continue
		}
		f.guarded, has.Guarded = true, true
		p.attached[index] = has
		if had, known := p.lastFabric(index); known && had.guarded {
			p.mended = append(p.mended, "the guard was missing on fabric device "+name)
		}
	}
}

// attachFabric attaches the programs to a fabric device if they differ from the last pass.
// It does not retry XDP in each pass: a driver without XDP would fail each time. But it
// retries XDP once the other XDP program that was on the device is gone.
func (p *Pass) attachFabric(f *FabricDevice, there map[int]datapath.Attachment) {
	index, name := f.Link.Attrs().Index, f.Link.Attrs().Name
	had, known := p.lastFabric(index)
	why := p.unwantedXDP(f)
	same := (had.NoXDP == "") == (why == "") // whether XDP is wanted
	xdp := f.Link.Attrs().Xdp
	freed := why == "" && had.Why == datapath.OtherXDP && !p.isPartial() && (xdp == nil || !xdp.Attached)
	if has, ok := there[index]; ok && known && has.Current && has.Kind == datapath.KindFabric && has.Mode == had.Mode && same && !freed {
		if f.Fabric, f.NoXDP = had.Fabric, why; why != "" && had.Why == had.NoXDP {
			f.Why = why
		}
		return
	}
	if p.waits(Object{kindDevice, name}) {
		return
	}
	now, err := p.r.Programs.Plane().AttachFabric(index, why)
	if err != nil {
		p.fail(Object{kindDevice, name}, fmt.Errorf("attach the programs to fabric device %s: %w", name, err))
		return
	}
	if known && had.NoXDP == noXDPWhereDirect && why == "" {
		p.r.xdpAgain = true
	}
	f.Fabric, f.NoXDP = now, why
	has := there[index]
	there[index] = datapath.Attachment{Ifindex: index, Kind: datapath.KindFabric, Mode: now.Mode, Current: true, Guarded: has.Guarded && has.Current}
	p.r.log.Info("programs attached to fabric device", "device", name, "mode", now.Mode, "why_no_xdp", now.Why)
	if known && had.Mode == now.Mode && same {
		p.mended = append(p.mended, "programs were missing on fabric device "+name)
	}
}

func (p *Pass) lastFabric(index int) (FabricDevice, bool) {
	if p.r.Last == nil {
		return FabricDevice{}, false
	}
	for _, f := range p.r.Last.Fabric {
		if f.Link.Attrs().Index == index {
			return f, f.Mode != ""
		}
	}
	return FabricDevice{}, false
}

// listAttached lists the programs on the node's devices. A partial pass updates the list of the
// last pass.
func (p *Pass) listAttached() {
	p.attached = map[int]datapath.Attachment{}
	if last := p.r.Last; p.isPartial() && last.attached != nil && !last.failed(thePrograms) && !p.renewed {
		p.attached, p.resumed = last.attached, true
		maps.DeleteFunc(p.attached, func(index int, _ datapath.Attachment) bool { return !p.r.devices.Has(index) })
		return
	}
	all, err := p.r.Programs.Plane().Attached()
	if err != nil {
		p.fail(thePrograms, err)
	}
	for _, a := range all {
		p.attached[a.Ifindex] = a
	}
}

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
