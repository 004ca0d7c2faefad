package netdev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// GRODevice makes the kernel merge received VXLAN packets (GRO) before the programs
// handle them, so that the programs decapsulate many TCP segments at once. The kernel
// merges packets for which it has a VXLAN socket (vxlan_gro_receive). So the agent
// creates a VXLAN device without a VNI: it opens the socket and receives no packets.
// The kernel cannot merge MPLS packets. XDP decapsulates them before GRO.
const GRODevice = HostPrefix + "gro"

// Attributes of linux/if_link.h that the netlink package lacks.
const iflaVXLANVNIFilter = 30

func mergeAlias(node string) string { return "vrouter node " + node + " merges VXLAN" }

// KeepMerging creates GRODevice if it is missing, or if its settings differ.
func KeepMerging(s *Space, node string, port uint16) (made bool, err error) {
	l, err := s.Link(GRODevice)
	if err != nil {
		return false, err
	}
	if l != nil {
		v, is := l.(*netlink.Vxlan)
		if l.Attrs().Alias != mergeAlias(node) {
			return false, fmt.Errorf("create VXLAN device %s: a device with this name exists and does not belong to this node; delete it, or set vxlan_gro: off", GRODevice)
		}
		if is && v.Port == int(port) && l.Attrs().Flags&net.FlagUp != 0 {
			return false, nil
		}
		if err := s.Links.LinkDel(l); err != nil {
			return false, fmt.Errorf("delete device %s: %w", GRODevice, err)
		}
	}
	if err := s.Do(func() error { return addMerging(port) }); err != nil {
		return false, fmt.Errorf("create VXLAN device %s on UDP port %d: %w", GRODevice, port, err)
	}
	return true, configureMerging(s, node)
}

// addMerging creates a VXLAN device with an empty VNI filter.
func addMerging(port uint16) error {
	r := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	r.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	r.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(GRODevice)))
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("vxlan"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_VXLAN_PORT, binary.BigEndian.AppendUint16(nil, port))
	data.AddRtAttr(nl.IFLA_VXLAN_LEARNING, []byte{0})
	data.AddRtAttr(nl.IFLA_VXLAN_FLOWBASED, []byte{1})
	data.AddRtAttr(iflaVXLANVNIFilter, []byte{1})
	r.AddData(info)
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// configureMerging marks the device and sets it up without addresses. The socket
// opens when the device is up.
func configureMerging(s *Space, node string) error {
	l, err := s.Link(GRODevice)
	if err != nil {
		return err
	}
	if l == nil {
		return fmt.Errorf("configure device %s: the device was deleted; the agent retries", GRODevice)
	}
	err = errors.Join(
		s.Links.LinkSetAlias(l, mergeAlias(node)),
		s.Sysctls("ipv6", GRODevice, Setting{"disable_ipv6", "1"}),
		s.Links.LinkSetUp(l),
	)
	if err != nil {
		return errors.Join(fmt.Errorf("configure device %s: %w", GRODevice, err), s.Links.LinkDel(l))
	}
	return nil
}

// RemoveMerging deletes GRODevice if it belongs to this node.
func RemoveMerging(s *Space, node string) error {
	l, err := s.Link(GRODevice)
	if err != nil || l == nil || l.Attrs().Alias != mergeAlias(node) {
		return err
	}
	if err := s.Links.LinkDel(l); err != nil {
		return fmt.Errorf("delete device %s: %w", GRODevice, err)
	}
	return nil
}
