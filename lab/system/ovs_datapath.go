package system

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// ovsDatapath is the kind of a bridge's datapath. The value is the datapath_type of
// the bridge.
type ovsDatapath string

const (
	ovsKernel    ovsDatapath = "system"
	ovsUserspace ovsDatapath = "netdev"

	// ovsDatapathKey is the recorded setting that names the datapath.
	ovsDatapathKey = "Open vSwitch datapath"
)

// ovsKernelTunnel has, by tunnel type, the device with which the kernel's datapath
// sends and receives (lib/dpif-netlink.c, netdev_vport_get_dpif_port).
var ovsKernelTunnel = map[string]string{"vxlan": "vxlan_sys_4789", "gre": "gre_sys"}

// String returns the datapath's name in the run's record.
func (d ovsDatapath) String() string {
	return map[ovsDatapath]string{ovsKernel: "kernel", ovsUserspace: "userspace (netdev)"}[d]
}

// choose returns the kernel's datapath if this kernel has it, else the userspace
// datapath and the reason. The request for the netlink family makes the kernel load
// the openvswitch module.
func (o OVS) choose(n *Node) (_ ovsDatapath, why string) {
	err := n.Space.Do(func() error {
		_, err := netlink.GenlFamilyGet("ovs_datapath")
		return err
	})
	if err != nil {
		return ovsUserspace, fmt.Sprintf(": this kernel has no openvswitch module (%v)", err)
	}
	const name = "ovs-try"
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	var trial netlink.Link = &netlink.Vxlan{LinkAttrs: attrs, FlowBased: true, Port: vxlanPort}
	if o.Tunnel == "gre" {
		trial = &netlink.Gretap{LinkAttrs: attrs, FlowBased: true}
	}
	if err := errors.Join(n.Space.Add(trial), n.Space.Remove(name)); err != nil {
		return ovsUserspace, fmt.Sprintf(": this kernel's datapath has no %s tunnels (%v)", o.Tunnel, err)
	}
	return ovsKernel, ""
}

// removeKernelDatapath removes the kernel's datapath with all its ports. The
// datapath remains when ovs-vswitchd ends.
func removeKernelDatapath(n *Node) error {
	const device = "ovs-system"
	if _, err := n.Space.Links.LinkByName(device); err != nil {
		return nil // the system used the userspace datapath, or did not start
	}
	if _, err := n.command("ovs-dpctl", "del-dp", string(ovsKernel)+"@"+device); err != nil {
		return fmt.Errorf("remove Open vSwitch's datapath from %s: %w", n.Name, err)
	}
	return nil
}
