package netdev

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/netspace"
	"windtunnel/vrouter/agent/config"
)

// newPair describes a pair of devices. attrs are the attributes of the node's end. inside is
// the name of the workload's end, mac its MAC address, and namespace its network namespace (a
// netlink.NsFd; nil: the node's namespace). The kernel clears the marks of frames that come
// from another namespace. Without a program at its hook, the workload's end of a netkit pair drops
// all that the workload sends.
func newPair(kind config.WorkloadDevice, attrs netlink.LinkAttrs, inside string, mac net.HardwareAddr, namespace any) netlink.Link {
	if kind != config.Netkit {
		return &netlink.Veth{LinkAttrs: attrs, PeerName: inside, PeerHardwareAddr: mac, PeerNamespace: namespace}
	}
	l := &netlink.Netkit{
		LinkAttrs: attrs, Mode: netlink.NETKIT_MODE_L2, PeerPolicy: netlink.NETKIT_POLICY_BLACKHOLE,
		Scrub: netlink.NETKIT_SCRUB_DEFAULT, PeerScrub: netlink.NETKIT_SCRUB_DEFAULT,
	}
	peer := netlink.NewLinkAttrs()
	peer.Name, peer.HardwareAddr, peer.Namespace = inside, mac, namespace
	l.SetPeerAttrs(&peer)
	return l
}

// ChooseDevice returns the kind of the pairs that the agent makes. For config.AutoDevice this is
// netkit, or veth with the reason why not netkit. It tries a netkit pair in a new network namespace.
func ChooseDevice(want config.WorkloadDevice) (kind config.WorkloadDevice, why error) {
	if want == config.Veth {
		return want, nil
	}
	err := netspace.OwnThread(tryNetkit)
	if err == nil {
		return config.Netkit, nil
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = errors.New("this kernel has no netkit devices with a MAC address of choice")
	}
	return config.Veth, err
}

// tryNetkit gives the workload's end a MAC address, which the first kernels with netkit refuse.
func tryNetkit() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("create a network namespace: %w", err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "near"
	return netlink.LinkAdd(newPair(config.Netkit, attrs, "far", net.HardwareAddr{2, 0, 0, 0, 0, 1}, nil))
}
