package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Filters of ours have this priority and these names; the name tells them from
// other people's.
const (
	filterPriority = 0x7672
	filterHandle   = 1
)

func filterName(h hook) string { return "vrouter_" + string(h) }

// attachFilter attaches a program to the clsact hook of a device. The kernel replaces an older
// filter in one step.
func (d *Datapath) attachFilter(h hook, ifindex int) error {
	if err := d.addHook(ifindex); err != nil {
		return err
	}
	d.beforeSwap()
	f := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: ifindex, Parent: h.parent(), Handle: filterHandle,
			Protocol: unix.ETH_P_ALL, Priority: filterPriority,
		},
		Fd: d.programOf(h).FD(), Name: filterName(h), DirectAction: true,
	}
	if err := d.tc.FilterReplace(f); err != nil {
		return fmt.Errorf("add the filter to device %d: %w (needs CONFIG_NET_CLS_BPF)", ifindex, err)
	}
	return nil
}

// hookNote is a directory that says that the clsact hook of a device is ours.
func (d *Datapath) hookNote(ifindex int) string {
	return filepath.Join(d.linkDir(), hookNotePrefix+strconv.Itoa(ifindex))
}

const hookNotePrefix = "qdisc-"

// addHook adds the clsact qdisc if the device has none, and records that in a note. It writes
// the note first, so that a hook is removed even after a crash.
func (d *Datapath) addHook(ifindex int) error {
	note := d.hookNote(ifindex)
	known := os.Mkdir(note, 0o700)
	if known != nil && !errors.Is(known, os.ErrExist) {
		return fmt.Errorf("record in the pins that vrouter adds the clsact hook of device %d: %w", ifindex, known)
	}
	err := d.tc.QdiscAdd(clsact(ifindex))
	if err == nil || errors.Is(err, unix.EEXIST) && known != nil {
		return nil
	}
	gone := os.Remove(note)
	if errors.Is(err, unix.EEXIST) {
		return gone
	}
	return errors.Join(fmt.Errorf("add the clsact hook to device %d: %w (needs CONFIG_NET_SCH_INGRESS)", ifindex, err), gone)
}

// removeHook removes the clsact hook of a device, if addHook added it and no other program uses
// it.
func (d *Datapath) removeHook(ifindex int) error {
	note := d.hookNote(ifindex)
	if _, err := os.Stat(note); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	ours, others, err := d.ourFilters(ifindex)
	if err != nil || len(ours)+others > 0 {
		return err
	}
	if err := d.tc.QdiscDel(clsact(ifindex)); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove the clsact hook from device %d: %w", ifindex, err)
	}
	return os.Remove(note)
}

func clsact(ifindex int) netlink.Qdisc {
	return &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifindex, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT},
		QdiscType:  "clsact",
	}
}

// ourFilters returns the vrouter's filters on a device, and the number of other
// filters. A missing device has none.
func (d *Datapath) ourFilters(ifindex int) (ours []*netlink.BpfFilter, others int, err error) {
	for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		all, err := d.filters(ifindex, parent)
		if err != nil {
			return nil, 0, err
		}
		mine := oursAmong(all)
		ours, others = append(ours, mine...), others+len(all)-len(mine)
	}
	return ours, others, nil
}

func oursAmong(all []netlink.Filter) (ours []*netlink.BpfFilter) {
	for _, f := range all {
		if b, ok := f.(*netlink.BpfFilter); ok && strings.HasPrefix(b.Name, filterName("")) {
			ours = append(ours, b)
		}
	}
	return ours
}

// filters lists the filters of a device's hook.
func (d *Datapath) filters(ifindex int, parent uint32) ([]netlink.Filter, error) {
	all, err := d.tc.FilterList(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: ifindex}}, parent)
	if err != nil {
		return nil, fmt.Errorf("list the filters of device %d: %w", ifindex, err)
	}
	return all, nil
}

// removeFilter removes a filter of the data path. The hook stays: a device that is up loses
// packets when its hook is removed.
func (d *Datapath) removeFilter(h hook, ifindex int) error {
	ours, _, err := d.ourFilters(ifindex)
	if err != nil {
		return err
	}
	for _, f := range ours {
		if f.Name != filterName(h) {
			continue
		}
		if err := d.tc.FilterDel(f); err != nil {
			return fmt.Errorf("remove the filter from device %d: %w", ifindex, err)
		}
	}
	return nil
}

// filtersAttached calls note for each filter of the vrouter.
func (d *Datapath) filtersAttached(note func(hook, int, string, bool)) error {
	has, err := d.clsactDevices()
	if err != nil {
		return err
	}
	for index := range has {
		for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
			all, err := d.filters(index, parent)
			if err != nil {
				return err
			}
			isVif := false
			for _, f := range oursAmong(all) {
				h := hook(strings.TrimPrefix(f.Name, filterName("")))
				note(h, index, "clsact", f.Id == int(d.ids[h]))
				isVif = isVif || h == hookVif
			}
			if isVif {
				break // a vif has no filter at its egress, and there may be thousands of vifs
			}
		}
	}
	return nil
}

// clsactDevices returns the devices that have a clsact or an ingress qdisc.
func (d *Datapath) clsactDevices() (map[int]bool, error) {
	qdiscs, err := d.tc.QdiscList(nil)
	if err != nil {
		return nil, fmt.Errorf("list queueing disciplines: %w", err)
	}
	has := map[int]bool{}
	for _, q := range qdiscs {
		if q.Type() == "clsact" || q.Type() == "ingress" {
			has[q.Attrs().LinkIndex] = true
		}
	}
	return has, nil
}
