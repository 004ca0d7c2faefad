package netdev

import (
	"errors"
	"fmt"
	"net"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/agent/config"
)

// newPair describes a pair of devices. attrs are the attributes of the node's end. inside is
// the name of the workload's end, mac its MAC address, and namespace its network namespace (a
// netlink.NsFd; nil: the node's namespace). The kernel clears the marks of frames that come
// from another namespace.
func newPair(kind config.WorkloadDevice, attrs netlink.LinkAttrs, inside string, mac net.HardwareAddr, namespace any) netlink.Link {
	if kind != config.Netkit {
		return &netlink.Veth{LinkAttrs: attrs, PeerName: inside, PeerHardwareAddr: mac, PeerNamespace: namespace}
	}
	l := &netlink.Netkit{
		LinkAttrs: attrs, Mode: netlink.NETKIT_MODE_L2,
		Scrub: netlink.NETKIT_SCRUB_DEFAULT, PeerScrub: netlink.NETKIT_SCRUB_DEFAULT,
	}
	peer := netlink.NewLinkAttrs()
	peer.Name, peer.HardwareAddr, peer.Namespace = inside, mac, namespace
	l.SetPeerAttrs(&peer)
	return l
}

// TryDevice returns nil if the kernel has this kind of device. It creates a pair in a new
// network namespace.
func TryDevice(kind config.WorkloadDevice) error {
	if kind == config.Veth {
		return nil
	}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // not unlocked, so the thread and its namespace end with the goroutine
		result <- tryPair(kind)
	}()
	err := <-result
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = errors.New("this kernel has no such devices")
	}
	if err != nil {
		return fmt.Errorf("workload_device: %s: %w; use Linux 6.8 or later with CONFIG_NETKIT=y, or set workload_device: veth", kind, err)
	}
	return nil
}

func tryPair(kind config.WorkloadDevice) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("create a network namespace: %w", err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "near"
	return netlink.LinkAdd(newPair(kind, attrs, "far", nil, nil))
}
