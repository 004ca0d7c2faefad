package netns

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// cutDevice names the bridge before a port whose NIC verifies the outermost checksum. The wire sends superframes to the
// bridge, which cuts them and fills in their checksums, and has only this port. So programs at the port's egress see frames
// as a NIC receives them.
func cutDevice(port string) string { return "cut" + port }

// verifyOuter makes the NIC behind a port verify the outermost checksum of each frame: nic_receive in bpf/wire.c.
func (w *wire) verifyOuter(port netlink.Link) error {
	device, off := cutDevice(port.Attrs().Name), false
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: device, MTU: port.Attrs().MTU}, MulticastSnooping: &off}
	if err := w.space.Add(bridge); err != nil {
		return err
	}
	if err := w.space.Enslave(port.Attrs().Name, device); err != nil {
		return err
	}
	on, err := w.space.OffloadsOn(device)
	if err != nil {
		return err
	}
	states := testbed.NICOffloads(on, suite.OffloadNone)
	states["tx-checksum-ip-generic"] = false
	if err := w.space.Offloads(device, states); err != nil {
		return err
	}
	if err := w.space.DeviceSysctl("ipv6", device, "disable_ipv6", "1"); err != nil {
		return err
	}
	if err := addFilter(w.space, port, netlink.HANDLE_MIN_EGRESS, verifyPriority, w.objects.NicReceive, wireProgNicReceive); err != nil {
		return fmt.Errorf("verify checksums: %w", err)
	}
	return w.space.Up(device)
}
