package datapath

import (
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
)

// whyNotOn returns why XDP must not be attached to a device; empty if it may be, or if the
// device does not tell its driver.
func whyNotOn(ifindex int) string {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return ""
	}
	e, err := ethtool.NewEthtool()
	if err != nil {
		return ""
	}
	defer e.Close()
	driver, err := e.DriverName(l.Attrs().Name)
	if err != nil {
		return ""
	}
	features, err := e.Features(l.Attrs().Name)
	if err != nil {
		return ""
	}
	return whyNotWith(driver, features)
}

// whyNotWith is whyNotOn for a driver and the features that are on. With XDP, virtio_net
// turns off that the host hands it merged packets, for all traffic of the virtual machine
// (virtnet_xdp_set() of drivers/net/virtio_net.c); where it cannot, it refuses XDP.
func whyNotWith(driver string, features map[string]bool) string {
	if driver == "virtio_net" && (features["rx-gro-hw"] || features["rx-lro"]) {
		return "XDP would turn off the merging of received packets by the host (virtio_net with rx-gro-hw)"
	}
	return ""
}
