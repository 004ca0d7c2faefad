package netdev

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/model"
)

// limiter is the handle of the agent's queueing disciplines. The agent does not
// change queueing disciplines with other handles.
var limiter = netlink.MakeHandle(0x7672, 0)

// Burst size and queueing time of a limit.
const (
	burstTime = 10 * time.Millisecond
	minBurst  = 64 << 10 // bytes: one TCP superframe
	waitTime  = 25 * time.Millisecond
)

// limit sets a token bucket (tc-tbf(8)) on a device. Rate 0 removes it.
func (w *Wire) limit(p model.Port, s *nsCache, l netlink.Link, rate model.Rate) error {
	if rate == 0 && (w.made[p.Name] || w.Limited != nil && !w.Limited(p.Name)) {
		return nil
	}
	has, err := s.bucketOf(l)
	if err != nil {
		return err
	}
	want := bucketOf(l, rate)
	name := l.Attrs().Name
	switch {
	case rate == 0 && has == nil, rate > 0 && has != nil && has.Rate == want.Rate && has.Limit == want.Limit:
		return nil
	case rate == 0:
		if err := s.removeLimit(l); err != nil {
			return err
		}
		w.changed(p.Name, "limit of "+name+" removed")
		return nil
	}
	if err := s.Links.QdiscReplace(want); err != nil {
		return fmt.Errorf("limit device %s to %sbit/s: %w; the kernel needs the queueing discipline tbf", name, rate, err)
	}
	w.changed(p.Name, fmt.Sprintf("limit of %s set to %sbit/s", name, rate))
	return nil
}

// RemoveLimit removes the agent's bandwidth limit from a device of the node that no port uses.
func (w *Wire) RemoveLimit(index int) error {
	if l := w.own.devices.byIndex[index]; l != nil { // else the limit was deleted with the device
		return w.own.removeLimit(l)
	}
	return nil
}

// removeLimit removes the agent's bandwidth limit from a device, if it has one.
func (s *nsCache) removeLimit(l netlink.Link) error {
	has, err := s.bucketOf(l)
	if err != nil || has == nil {
		return err
	}
	err = s.Links.QdiscDel(has)
	if err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ENOENT) { // else the device or its limit is already deleted
		return fmt.Errorf("remove the limit of device %s: %w", l.Attrs().Name, err)
	}
	return nil
}

func bucketOf(l netlink.Link, rate model.Rate) *netlink.Tbf {
	bytes := max(uint64(rate)/8, 1)
	in := func(d time.Duration) uint64 { return uint64(float64(bytes) * d.Seconds()) }
	burst := uint32(max(in(burstTime), minBurst))
	return &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: limiter, Parent: netlink.HANDLE_ROOT},
		Rate:       bytes, Buffer: netlink.Xmittime(bytes, burst), Limit: uint32(in(waitTime)) + burst,
	}
}
