package datapath

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// programNames are the kernel's names of the programs.
var programNames = map[hook]string{hookVif: "from_workload", hookNetkit: "from_workload", hookFabric: "fabric_tc", hookFabricXDP: "fabric_xdp", hookFabricOut: "fabric_out", hookLoop: "looped"}

// evict detaches from a hook the programs of an earlier agent with another run_dir. Their pins are
// in that directory, so adopt does not find them. They have another nonce: the old and the new
// programs would drop each other's packets. The kernel itself replaces an earlier tc filter.
func (d *Datapath) evict(h hook, ifindex int) error {
	attached, err := d.linksOn(h, ifindex)
	if err != nil {
		return fmt.Errorf("list the programs on device %d: %w", ifindex, err)
	}
	for _, a := range attached {
		if !d.isEarlier(h, a.program) || d.hasPin(h, ifindex, a.link) {
			continue
		}
		l, err := link.NewFromID(a.link)
		if errors.Is(err, os.ErrNotExist) {
			continue // detached meanwhile
		}
		if err != nil {
			return fmt.Errorf("open link %d of an earlier agent on device %d: %w", a.link, ifindex, err)
		}
		if err := errors.Join(l.Detach(), l.Close()); err != nil {
			return fmt.Errorf("detach the program of an earlier agent from device %d: %w", ifindex, err)
		}
		d.options.Logger.Warn("detached a program of an earlier agent, which had another run_dir", "program", programNames[h], "ifindex", ifindex)
	}
	return nil
}

// hasPin reports whether a link is the one that this Datapath has pinned for a hook.
func (d *Datapath) hasPin(h hook, ifindex int, id link.ID) bool {
	l, err := link.LoadPinnedLink(d.pinOf(h, ifindex), nil)
	if err != nil {
		return false
	}
	defer l.Close()
	info, err := l.Info()
	return err == nil && info.ID == id
}

// linked is a program with its link.
type linked struct {
	program ebpf.ProgramID
	link    link.ID
}

// linksOn returns the links of a hook.
func (d *Datapath) linksOn(h hook, ifindex int) (all []linked, err error) {
	if h == hookFabricXDP {
		return d.xdpLinks(ifindex)
	}
	at := h.tcx()
	if h == hookNetkit {
		at = ebpf.AttachNetkitPeer
	}
	r, err := link.QueryPrograms(link.QueryOptions{Target: ifindex, Attach: at})
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.EINVAL) {
		return nil, nil // the kernel has no such links
	}
	if err != nil {
		return nil, err
	}
	for _, p := range r.Programs {
		if id, has := p.LinkID(); has {
			all = append(all, linked{p.ID, id})
		}
	}
	return all, nil
}

// xdpLinks returns the link of a device's XDP program. The kernel reports only the program of a
// device, so xdpLinks searches all links for it.
func (d *Datapath) xdpLinks(ifindex int) (all []linked, err error) {
	device, err := d.tc.LinkByIndex(ifindex)
	if err != nil || device.Attrs().Xdp == nil || !device.Attrs().Xdp.Attached {
		return nil, err
	}
	program := ebpf.ProgramID(device.Attrs().Xdp.ProgId)
	it := new(link.Iterator)
	defer it.Close()
	for it.Next() {
		info, err := it.Link.Info()
		if err != nil {
			continue // deleted meanwhile
		}
		if xdp := info.XDP(); xdp != nil && int(xdp.Ifindex) == ifindex && info.Program == program {
			all = append(all, linked{program, info.ID})
		}
	}
	return all, it.Err()
}

// isEarlier reports whether a program is another agent's program for a hook. It compares the name of
// the program, and looks for the names of our maps among the program's maps.
func (d *Datapath) isEarlier(h hook, id ebpf.ProgramID) bool {
	if id == d.ids[h] {
		return false
	}
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return false
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil || info.Name != programNames[h] {
		return false
	}
	maps, _ := info.MapIDs()
	var names []string
	for _, id := range maps {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue
		}
		if info, err := m.Info(); err == nil {
			names = append(names, info.Name)
		}
		m.Close()
	}
	return slices.Contains(names, "outcomes") && (slices.Contains(names, "settings") || slices.Contains(names, "nexthops"))
}
