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

// attachFilter puts a program at the clsact ingress of a device. A replaced
// filter is swapped in one step.
func (d *Datapath) attachFilter(h hook, ifindex int) error {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return fmt.Errorf("find device %d: %w", ifindex, err)
	}
	fresh, err := d.addHook(l)
	if err != nil {
		return err
	}
	if !fresh {
		if current, err := d.filterIsCurrent(h, l); err != nil || current {
			return err
		}
	}
	d.beforeSwap()
	f := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: ifindex, Parent: h.parent(), Handle: filterHandle,
			Protocol: unix.ETH_P_ALL, Priority: filterPriority,
		},
		Fd: d.programOf(h).FD(), Name: filterName(h), DirectAction: true,
	}
	if err := netlink.FilterReplace(f); err != nil {
		return fmt.Errorf("add the filter to %s: %w (needs CONFIG_NET_CLS_BPF)", l.Attrs().Name, err)
	}
	return nil
}

// hookNote is a directory that says that the clsact hook of a device is ours.
func (d *Datapath) hookNote(ifindex int) string {
	return filepath.Join(d.linkDir(), hookNotePrefix+strconv.Itoa(ifindex))
}

const hookNotePrefix = "qdisc-"

// addHook adds the clsact qdisc if the device has none, and records that in a note. A fresh
// qdisc has no filters. It writes the note first, so that a hook is removed even after a
// crash.
func (d *Datapath) addHook(l netlink.Link) (fresh bool, err error) {
	note := d.hookNote(l.Attrs().Index)
	known := os.Mkdir(note, 0o700)
	if known != nil && !errors.Is(known, os.ErrExist) {
		return false, fmt.Errorf("note that the clsact hook of %s is ours: %w", l.Attrs().Name, known)
	}
	err = netlink.QdiscAdd(clsact(l))
	if err == nil || errors.Is(err, unix.EEXIST) && known != nil {
		return err == nil, nil
	}
	gone := os.Remove(note)
	if errors.Is(err, unix.EEXIST) {
		return false, gone
	}
	return false, errors.Join(fmt.Errorf("add the clsact hook to %s: %w (needs CONFIG_NET_SCH_INGRESS)", l.Attrs().Name, err), gone)
}

// removeHook removes the clsact hook of a device, if addHook added it and no other program uses
// it.
func (d *Datapath) removeHook(ifindex int) error {
	note := d.hookNote(ifindex)
	if _, err := os.Stat(note); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	l, err := netlink.LinkByIndex(ifindex)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return os.Remove(note)
	}
	if err != nil {
		return fmt.Errorf("find device %d: %w", ifindex, err)
	}
	ours, others, err := ourFilters(l)
	if err != nil || len(ours)+others > 0 {
		return err
	}
	if err := netlink.QdiscDel(clsact(l)); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove the clsact hook from %s: %w", l.Attrs().Name, err)
	}
	return os.Remove(note)
}

func clsact(l netlink.Link) netlink.Qdisc {
	return &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT},
		QdiscType:  "clsact",
	}
}

// ourFilters returns the vrouter's filters on a device, and the number of other
// filters.
func ourFilters(l netlink.Link) (ours []*netlink.BpfFilter, others int, err error) {
	for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		all, err := netlink.FilterList(l, parent)
		if err != nil {
			return nil, 0, fmt.Errorf("list the filters of %s: %w", l.Attrs().Name, err)
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

func (d *Datapath) filterIsCurrent(h hook, l netlink.Link) (bool, error) {
	all, err := netlink.FilterList(l, h.parent())
	if err != nil {
		return false, fmt.Errorf("list the filters of %s: %w", l.Attrs().Name, err)
	}
	for _, f := range oursAmong(all) {
		if f.Name == filterName(h) && f.Id == int(d.ids[h]) {
			return true, nil
		}
	}
	return false, nil
}

// removeFilter removes a filter of the data path. The hook stays: a device that is up loses
// packets when its hook is removed.
func (d *Datapath) removeFilter(h hook, ifindex int) error {
	l, err := netlink.LinkByIndex(ifindex)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find device %d: %w", ifindex, err)
	}
	ours, _, err := ourFilters(l)
	if err != nil {
		return err
	}
	for _, f := range ours {
		if f.Name != filterName(h) {
			continue
		}
		if err := netlink.FilterDel(f); err != nil {
			return fmt.Errorf("remove the filter from %s: %w", l.Attrs().Name, err)
		}
	}
	return nil
}

// filtersAttached asks over one socket: there may be thousands of devices.
func (d *Datapath) filtersAttached(note func(hook, int, string, bool)) error {
	has, err := clsactDevices(nil)
	if err != nil {
		return err
	}
	asked, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer asked.Close()
	for index := range has {
		for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
			all, err := asked.FilterList(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}, parent)
			if err != nil {
				return fmt.Errorf("list the filters of device %d: %w", index, err)
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

// clsactDevices are the devices that have a clsact, or an ingress, of one or of
// all. The kernel walks all devices for each question.
func clsactDevices(of netlink.Link) (map[int]bool, error) {
	qdiscs, err := netlink.QdiscList(of)
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
