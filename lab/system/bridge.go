package system

import (
	"errors"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// Bridge puts the containers of each node on a Linux bridge, with the fabric device
// as the bridge's uplink: the plain virtual switch.
type Bridge struct{}

const bridgeDevice = "br0"

func (Bridge) Name() string { return "bridge" }
func (Bridge) About() About {
	return About{
		Title: "the bridge", Description: "containers on a Linux bridge, the fabric device as its uplink",
		VMs: true, HostVNIC: true, OneDevice: true,
	}
}
func (Bridge) Needs() ([]string, []program.Program) { return []string{"veth", "bridge"}, nil }

func (Bridge) Attach(n *Node) error {
	if err := addBridge(n, bridgeDevice, n.MTU); err != nil {
		return err
	}
	if err := n.Space.Enslave(n.Fabric[0], bridgeDevice); err != nil {
		return err
	}
	return connectContainers(n, n.MTU)
}

func (Bridge) Detach(n *Node) error {
	return errors.Join(disconnectContainers(n), n.Space.Remove(bridgeDevice))
}

// Changes implements Changer.
func (b Bridge) Changes() map[suite.Change]Change {
	return map[suite.Change]Change{
		suite.ChangePorts: bridgePorts(b),
		suite.ChangeRoutes: bridgeEntry(func(n *Node) string { return n.Fabric[0] }, func(*Node) *netlink.Neigh {
			return &netlink.Neigh{State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER, HardwareAddr: spareMAC}
		}),
	}
}

func (Bridge) Devices(n *Node) []Device {
	return hops(n, vifName, bridgeHop)
}

// addBridge makes a bridge on the node and sets it up.
func addBridge(n *Node, name string, mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, mtu
	if err := n.Space.Add(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return err
	}
	// If br_netfilter is loaded, these sysctls are 1 in a new namespace. iptables would
	// then process every bridged frame.
	for _, key := range []string{"iptables", "ip6tables", "arptables"} {
		if err := n.Space.Sysctl("net.bridge.bridge-nf-call-"+key, "0"); err != nil {
			return err
		}
	}
	if err := n.Space.DeviceSysctl("ipv6", name, "disable_ipv6", "1"); err != nil {
		return err
	}
	// The bridge must not answer for the address of the node's virtual NIC.
	if err := n.Space.DeviceSysctl("ipv4", name, "arp_ignore", "1"); err != nil {
		return err
	}
	return n.Space.Up(name)
}
