package datapath

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// Kinds of devices.
const (
	KindVif    = "vif"
	KindFabric = "fabric"
)

// Attachment is a device with our programs on it, as the kernel says.
type Attachment struct {
	Ifindex int
	Kind    string // KindVif, KindFabric
	Mode    string // "tcx", "clsact", "netkit+tcx", "netkit+clsact", "xdp+tcx", "xdp+clsact"
	Guarded bool   // fabric: fabric_out drops tunnel packets that the programs did not send
	Netkit  bool   // vif: from_workload is also at netkit's hook
	Current bool   // the programs are those of this Datapath
}

// Fabric says how a fabric device is served.
type Fabric struct {
	Mode string
	Why  string // why not by XDP; empty where it is
}

// OtherXDP is the reason of Fabric.Why that ends when the other program is detached.
const OtherXDP = "another XDP program is there already"

// hook is one place for a program on a device.
type hook string

const (
	hookVif       hook = "vif"
	hookNetkit    hook = "netkit" // of the workload's end of a netkit pair
	hookFabric    hook = "fabric"
	hookFabricXDP hook = "xdp"
	hookFabricOut hook = "out"
	hookLoop      hook = "loop" // of the loopback device
)

const loopback = 1 // ifindex in each network namespace

// tcx returns the tcx attach type of a hook's program.
func (h hook) tcx() ebpf.AttachType {
	if h == hookFabricOut {
		return ebpf.AttachTCXEgress
	}
	return ebpf.AttachTCXIngress
}

// parent returns the clsact parent of a hook's program, if it is a tc filter.
func (h hook) parent() uint32 {
	if h == hookFabricOut {
		return netlink.HANDLE_MIN_EGRESS
	}
	return netlink.HANDLE_MIN_INGRESS
}

func (d *Datapath) pinOf(h hook, ifindex int) string {
	return filepath.Join(d.linkDir(), string(h)+"-"+strconv.Itoa(ifindex))
}

func (d *Datapath) programOf(h hook) *ebpf.Program {
	switch h {
	case hookVif, hookNetkit:
		return d.programs.FromWorkload
	case hookFabric:
		return d.programs.FabricTc
	case hookFabricOut:
		return d.programs.FabricOut
	case hookLoop:
		return d.programs.Looped
	}
	return d.programs.FabricXdp
}

// AttachVif attaches from_workload to a device's ingress. It is idempotent: it
// replaces an older program atomically, and attaches a missing one.
func (d *Datapath) AttachVif(ifindex int) error {
	_, err := d.attachTC(hookVif, ifindex, !d.options.NoTCX)
	return err
}

// AttachVifNow is AttachVif without the wait for a new tcx link: a device without a link gets a
// classic filter. For a new link the kernel waits, with the lock on all devices held, until no
// packet is in an older program (10 ms and more). A later AttachVif replaces the filter by a
// link. The device must be down, or it may lose packets: while the kernel adds the filter's
// hook, a device that is up has no queue (qdisc_graft).
func (d *Datapath) AttachVifNow(ifindex int) error {
	_, err := os.Stat(d.pinOf(hookVif, ifindex))
	_, err = d.attachTC(hookVif, ifindex, !d.options.NoTCX && err == nil)
	return err
}

// AttachNetkit attaches from_workload to netkit's hook of the workload's end. ifindex is the
// number of the primary. If the program is attached already, nothing changes. Packets that are
// routed then do not wait in the primary's queue. Attach the program to the primary's ingress
// too: all other frames go there.
func (d *Datapath) AttachNetkit(ifindex int) error {
	err := d.attachLink(hookNetkit, ifindex, func() (link.Link, error) {
		return link.AttachNetkit(link.NetkitOptions{Interface: ifindex, Program: d.programs.FromWorkload, Attach: ebpf.AttachNetkitPeer})
	})
	if err == nil {
		err = d.evict(hookNetkit, ifindex)
	}
	if err != nil {
		return fmt.Errorf("attach %s to netkit device %d: %w", hookVif, ifindex, err)
	}
	return nil
}

// AttachFabric sets the loopback device up, because a new namespace has it down, and attaches looped to
// it. It attaches fabric_tc to an underlay device and, if the driver has native XDP, fabric_xdp too. It is idempotent. tc comes first, because the
// host's stack must never get a packet that XDP decapsulated. noXDP is the reason not to use XDP;
// empty: use it if the driver has it.
func (d *Datapath) AttachFabric(ifindex int, noXDP string) (Fabric, error) {
	// The fabric_tc of this Datapath does not take packets that an earlier XDP program decapsulated.
	if err := errors.Join(d.evict(hookFabricXDP, ifindex), d.evict(hookFabricOut, ifindex)); err != nil {
		return Fabric{}, err
	}
	if _, err := d.attachTC(hookLoop, loopback, !d.options.NoTCX); err != nil {
		return Fabric{}, err
	}
	lo, err := d.tc.LinkByIndex(loopback)
	if err == nil && lo.Attrs().Flags&net.FlagUp == 0 {
		err = d.tc.LinkSetUp(lo)
	}
	if err != nil {
		return Fabric{}, fmt.Errorf("set the loopback device up, on which the kernel cuts superpackets: %w", err)
	}
	mode, err := d.attachTC(hookFabric, ifindex, !d.options.NoTCX)
	if err != nil {
		return Fabric{}, err
	}
	if d.options.NoXDP {
		noXDP = "XDP is turned off"
	}
	if noXDP == "" {
		noXDP = whyNotOn(ifindex)
	}
	if noXDP == "" {
		if err := d.metadata(); err != nil {
			noXDP = "XDP is not used, because the test of XDP metadata failed: " + err.Error()
		}
	}
	if noXDP != "" {
		return Fabric{Mode: mode, Why: noXDP}, d.dropLink(hookFabricXDP, ifindex)
	}
	if err := d.attachXDP(ifindex); err != nil {
		return Fabric{Mode: mode, Why: whyNoXDP(err)}, nil
	}
	return Fabric{Mode: "xdp+" + mode}, nil
}

// GuardFabric attaches fabric_out to the egress of an underlay device; idempotent.
// Before, attach this Datapath's program to every vif: older programs do not mark
// their packets, and fabric_out would drop these.
func (d *Datapath) GuardFabric(ifindex int) error {
	_, err := d.attachTC(hookFabricOut, ifindex, !d.options.NoTCX)
	return err
}

// attachTC attaches by tcx if tcx is true and the kernel has it, else by a clsact filter. Then it
// detaches the program of an earlier agent.
func (d *Datapath) attachTC(h hook, ifindex int, tcx bool) (mode string, err error) {
	defer func() {
		if err == nil {
			err = d.evict(h, ifindex)
		}
	}()
	if tcx {
		err := d.attachTCX(h, ifindex)
		if err == nil {
			return "tcx", d.removeFilter(h, ifindex)
		}
		if !errors.Is(err, ebpf.ErrNotSupported) {
			return "", fmt.Errorf("attach %s to device %d by tcx: %w", h, ifindex, err)
		}
	}
	if err := d.attachFilter(h, ifindex); err != nil {
		return "", fmt.Errorf("attach %s to device %d by clsact: %w (tcx needs Linux 6.6 with CONFIG_NET_XGRESS)", h, ifindex, err)
	}
	return "clsact", d.dropLink(h, ifindex)
}

// adopt returns the pinned link of a hook with our program on it, or nil where
// there is none that still holds the device.
func (d *Datapath) adopt(h hook, ifindex int) (link.Link, error) {
	l, err := link.LoadPinnedLink(d.pinOf(h, ifindex), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pinned link: %w", err)
	}
	info, err := l.Info()
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("ask the kernel about the pinned link: %w", err)
	}
	if !isOn(info, ifindex) {
		l.Close()
		return nil, d.dropLink(h, ifindex)
	}
	if info.Program == d.ids[h] {
		return l, nil
	}
	d.beforeSwap()
	if err := l.Update(d.programOf(h)); err != nil {
		l.Close()
		return nil, fmt.Errorf("swap the program: %w", err)
	}
	return l, nil
}

// isOn reports whether a link is still on a device. If a device is deleted, its links have
// the ifindex 0, and a new device can have its number. The link of a netkit pair has the
// ifindex of the workload's end, in the workload's namespace.
func isOn(info *link.Info, ifindex int) bool {
	if tcx := info.TCX(); tcx != nil {
		return int(tcx.Ifindex) == ifindex
	}
	if xdp := info.XDP(); xdp != nil {
		return int(xdp.Ifindex) == ifindex
	}
	netkit := info.Netkit()
	return netkit != nil && netkit.Ifindex != 0
}

func (d *Datapath) attachTCX(h hook, ifindex int) error {
	return d.attachLink(h, ifindex, func() (link.Link, error) {
		return link.AttachTCX(link.TCXOptions{
			Interface: ifindex, Program: d.programOf(h), Attach: h.tcx(),
			Anchor: link.Head(), // what XDP decapsulated may meet nobody else's program
		})
	})
}

func (d *Datapath) attachXDP(ifindex int) error {
	return d.attachLink(hookFabricXDP, ifindex, func() (link.Link, error) {
		return link.AttachXDP(link.XDPOptions{Interface: ifindex, Program: d.programs.FabricXdp, Flags: link.XDPDriverMode})
	})
}

// attachLink makes sure that a hook has a pinned link with our program. attach makes the link
// if there is none.
func (d *Datapath) attachLink(h hook, ifindex int, attach func() (link.Link, error)) error {
	l, err := d.adopt(h, ifindex)
	if err == nil && l == nil {
		if l, err = attach(); err == nil {
			err = pin(l, d.pinOf(h, ifindex))
		}
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// pin pins a link, so that it outlives the process. If that fails, it closes the link.
func pin(l link.Link, path string) error {
	if err := l.Pin(path); err != nil {
		l.Close()
		return fmt.Errorf("pin the link at %s: %w", path, err)
	}
	return nil
}

// dropLink detaches a hook's link, if there is one. Older kernels let a link go
// some time after its pin: it is detached first, so that it is done.
func (d *Datapath) dropLink(h hook, ifindex int) error {
	l, err := link.LoadPinnedLink(d.pinOf(h, ifindex), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errors.Join(err, os.Remove(d.pinOf(h, ifindex)))
	}
	err = l.Detach()
	if errors.Is(err, ebpf.ErrNotSupported) {
		err = nil
	}
	return errors.Join(err, l.Unpin(), l.Close())
}

// Detach removes every program of the data path from a device. A missing device is no
// error.
func (d *Datapath) Detach(ifindex int) error {
	return errors.Join(
		d.dropLink(hookFabricXDP, ifindex), // before fabric_tc
		d.dropLink(hookFabric, ifindex), d.dropLink(hookNetkit, ifindex), d.dropLink(hookVif, ifindex), d.dropLink(hookFabricOut, ifindex),
		d.removeFilter(hookFabric, ifindex), d.removeFilter(hookVif, ifindex), d.removeFilter(hookFabricOut, ifindex), d.removeHook(ifindex))
}

// Attached lists the devices that carry our programs in this namespace, in
// order of ifindex.
func (d *Datapath) Attached() ([]Attachment, error) {
	found := map[int]*Attachment{}
	looped := false
	note := func(h hook, ifindex int, mode string, current bool) {
		if h == hookLoop {
			looped = current
			return
		}
		a := found[ifindex]
		if a == nil {
			a = &Attachment{Ifindex: ifindex, Kind: KindFabric, Current: true}
			found[ifindex] = a
		}
		if h == hookVif || h == hookNetkit {
			a.Kind = KindVif
		}
		a.Netkit = a.Netkit || h == hookNetkit
		a.Current = a.Current && current
		switch {
		case h == hookFabricOut:
			a.Guarded = true
		case a.Mode == "":
			a.Mode = mode
		case mode == "xdp":
			a.Mode = "xdp+" + a.Mode
		default:
			a.Mode += "+" + mode
		}
	}
	if err := d.linksAttached(note); err != nil {
		return nil, err
	}
	if err := d.filtersAttached(note); err != nil {
		return nil, err
	}
	lo, err := d.tc.LinkByIndex(loopback)
	if err != nil {
		return nil, fmt.Errorf("read the state of the loopback device: %w", err)
	}
	looped = looped && lo.Attrs().Flags&net.FlagUp != 0
	var all []Attachment
	for _, a := range found {
		a.Current = a.Current && (looped || a.Kind == KindVif) // AttachFabric attaches it again
		all = append(all, *a)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Ifindex < all[j].Ifindex })
	return all, nil
}

func (d *Datapath) linksAttached(note func(hook, int, string, bool)) error {
	entries, err := os.ReadDir(d.linkDir())
	if err != nil {
		return fmt.Errorf("list the pinned links: %w", err)
	}
	// tc before xdp, so that modes read "xdp+tcx".
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	for _, e := range entries {
		if e.IsDir() {
			continue // a note of clsact.go
		}
		kind, number, _ := strings.Cut(e.Name(), "-")
		ifindex, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		if err := d.linkAttached(hook(kind), ifindex, note); err != nil {
			return err
		}
	}
	return nil
}

// programIDs are the kernel's numbers of the programs. To ask for them takes
// longer than all there is to ask of a device.
func (d *Datapath) programIDs() (map[hook]ebpf.ProgramID, error) {
	ids := map[hook]ebpf.ProgramID{}
	for _, h := range []hook{hookVif, hookNetkit, hookFabric, hookFabricXDP, hookFabricOut, hookLoop} {
		info, err := d.programOf(h).Info()
		if err != nil {
			return nil, fmt.Errorf("ask the kernel about program %s: %w", h, err)
		}
		ids[h], _ = info.ID()
	}
	return ids, nil
}

func (d *Datapath) linkAttached(h hook, ifindex int, note func(hook, int, string, bool)) error {
	l, err := link.LoadPinnedLink(d.pinOf(h, ifindex), nil)
	if err != nil {
		return fmt.Errorf("read the pinned link %s-%d: %w", h, ifindex, err)
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		return fmt.Errorf("ask the kernel about link %s-%d: %w", h, ifindex, err)
	}
	if !isOn(info, ifindex) {
		return d.dropLink(h, ifindex) // the device is gone
	}
	mode := "tcx"
	switch h {
	case hookFabricXDP:
		mode = "xdp"
	case hookNetkit:
		mode = "netkit"
	}
	note(h, ifindex, mode, info.Program == d.ids[h])
	return nil
}

func whyNoXDP(err error) string {
	switch {
	case errors.Is(err, ebpf.ErrNotSupported) || strings.Contains(err.Error(), "operation not supported"):
		return "the driver has no native XDP"
	case strings.Contains(err.Error(), "device or resource busy") || strings.Contains(err.Error(), "file exists"):
		return OtherXDP
	case strings.Contains(err.Error(), "numerical result out of range"):
		return "the device's MTU is too large for its driver's XDP"
	}
	return err.Error()
}
