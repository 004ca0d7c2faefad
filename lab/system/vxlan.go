package system

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// VXLAN is the kernel's VXLAN device (RFC 7348) behind a Linux bridge on each
// node; unknown destinations are replicated to every other node.
type VXLAN struct{}

const (
	vxlanDevice = "vxlan0"
	vxlanVNI    = 42
	vxlanPort   = 4789 // IANA
	// vxlanOverhead on an IPv4 underlay: inner Ethernet 14, VXLAN 8, UDP 8, IPv4 20.
	vxlanOverhead = 50
)

func (VXLAN) Name() string { return "vxlan" }
func (VXLAN) About() About {
	return About{Title: "kernel VXLAN", Description: "containers on a Linux bridge, joined by the kernel's VXLAN device", VMs: true, Overhead: vxlanOverhead}
}
func (VXLAN) Needs() ([]string, []program.Program) { return []string{"veth", "bridge", "vxlan"}, nil }

func (v VXLAN) Attach(n *Node) error {
	mtu := MTU(v, n.MTU)
	if err := addBridge(n, bridgeDevice, mtu); err != nil {
		return err
	}
	if err := addVXLAN(n, bridgeDevice, vxlanVNI, mtu, true); err != nil {
		return err
	}
	if err := v.replicate(n); err != nil {
		return err
	}
	if err := n.Space.Up(vxlanDevice); err != nil {
		return err
	}
	return connectContainers(n, mtu)
}

// addVXLAN makes the VXLAN device as a port of a bridge. The device is down. With learning it learns
// addresses from frames.
func addVXLAN(n *Node, bridge string, vni, mtu int, learning bool) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = vxlanDevice, mtu
	dev := &netlink.Vxlan{LinkAttrs: attrs, VxlanId: vni, SrcAddr: net.IP(n.Underlay[n.Index].AsSlice()), Port: vxlanPort, Learning: learning}
	if err := n.Space.Add(dev); err != nil {
		return fmt.Errorf("%w (needs CONFIG_VXLAN)", err)
	}
	return n.Space.Enslave(vxlanDevice, bridge)
}

// replicate sends frames for unknown destinations to all other nodes.
func (VXLAN) replicate(n *Node) error {
	l, err := n.Space.Link(vxlanDevice)
	if err != nil {
		return err
	}
	for _, addr := range n.peers() {
		entry := tunnelEntry(make(net.HardwareAddr, 6), addr)
		entry.LinkIndex, entry.Family = l.Attrs().Index, unix.AF_BRIDGE
		if err := n.Space.Links.NeighAppend(entry); err != nil {
			return fmt.Errorf("replicate unknown destinations to %s: %w", addr, err)
		}
	}
	return nil
}

// tunnelEntry returns the entry of the forwarding table which says that a MAC address is behind the node with an underlay
// address. The MAC address of zeros stands for unknown destinations.
func tunnelEntry(mac net.HardwareAddr, addr netip.Addr) *netlink.Neigh {
	return &netlink.Neigh{State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF, IP: net.IP(addr.AsSlice()), HardwareAddr: mac}
}

func (VXLAN) Detach(n *Node) error {
	return errors.Join(disconnectContainers(n), n.Space.Remove(vxlanDevice), n.Space.Remove(bridgeDevice))
}

// Changes implements Changer.
func (v VXLAN) Changes() map[suite.Change]Change {
	tunnel := func(*Node) string { return vxlanDevice }
	return map[suite.Change]Change{
		suite.ChangePorts:  bridgePorts(v),
		suite.ChangeNodes:  bridgeEntry(tunnel, func(n *Node) *netlink.Neigh { return tunnelEntry(make(net.HardwareAddr, 6), spareUnderlay(n)) }),
		suite.ChangeRoutes: bridgeEntry(tunnel, func(n *Node) *netlink.Neigh { return tunnelEntry(spareMAC, spareUnderlay(n)) }),
	}
}

func (VXLAN) Devices(n *Node) []Device {
	return hops(n, vifName, bridgeHop, tunnelHop(vxlanDevice))
}
