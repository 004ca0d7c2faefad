package datapath

import (
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
)

// whyNotOn returns the reason why XDP must not be attached to a device. It is empty if XDP
// is allowed, or if the device's driver is unknown.
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

// whyNotWith returns the same reason for a driver and its enabled features. With XDP,
// virtio_net no longer receives merged packets from the host. That slows all traffic of the
// virtual machine (virtnet_xdp_set() of drivers/net/virtio_net.c). If virtio_net cannot
// disable this merging, it rejects XDP.
func whyNotWith(driver string, features map[string]bool) string {
	if driver == "virtio_net" && (features["rx-gro-hw"] || features["rx-lro"]) {
		return "with XDP, the host would no longer merge received packets (virtio_net with rx-gro-hw)"
	}
	return ""
}
