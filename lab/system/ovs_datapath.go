package system

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// ovsDatapath is where Open vSwitch switches, by the name that a bridge's
// datapath_type gives it.
type ovsDatapath string

const (
	ovsKernel    ovsDatapath = "system"
	ovsUserspace ovsDatapath = "netdev"

	// ovsDatapathKey is the recorded setting that tells which one ran.
	ovsDatapathKey = "Open vSwitch datapath"
)

// ovsKernelTunnel are the devices by which the kernel's datapath sends and
// receives (lib/dpif-netlink.c, netdev_vport_get_dpif_port).
var ovsKernelTunnel = map[string]string{"vxlan": "vxlan_sys_4789", "gre": "gre_sys"}

// String is what the record says.
func (d ovsDatapath) String() string {
	return map[ovsDatapath]string{ovsKernel: "kernel", ovsUserspace: "userspace (netdev)"}[d]
}

// choose finds the kernel's datapath, or says why the userspace's has to do, in words to
// follow its name.
// Asking for the family has the kernel load the module where it has one.
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

// removeKernelDatapath removes the kernel's datapath, which outlives the daemon
// with all its ports.
func removeKernelDatapath(n *Node) error {
	const device = "ovs-system"
	if _, err := n.Space.Links.LinkByName(device); err != nil {
		return nil // the userspace datapath ran, or none yet
	}
	if _, err := n.command("ovs-dpctl", "del-dp", string(ovsKernel)+"@"+device); err != nil {
		return fmt.Errorf("remove Open vSwitch's datapath from %s: %w", n.Name, err)
	}
	return nil
}
