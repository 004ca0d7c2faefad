package netdev

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/model"
)

// Labels lets fabric devices receive frames to the node's labels. Labels are the MAC
// addresses of packets with the encapsulation direct.
type Labels struct {
	Space *Space
	kept  map[label]bool // labels in the filters of the devices; nil: unknown
}

// label is a MAC address that a fabric device receives in addition to its own.
type label struct {
	ifindex int
	mac     model.MAC
}

// EthernetLink is an Ethernet link of the underlay on which this node has an address.
type EthernetLink struct {
	Ifindex int
	Source  netip.Addr // address of this node on the link
	Subnet  netip.Prefix
}

// NewTester creates a tester for the links of the node. It opens its sockets on threads of their
// own: a pass, which uses the node's thread, can wait for the tester.
func NewTester(s *Space, log *slog.Logger) *direct.Tester {
	return direct.NewTester(func(socket direct.Socket) (c net.PacketConn, err error) {
		err = s.Once(func() error {
			c, err = direct.Listen(socket)
			return err
		})
		return c, err
	}, log)
}

// hasLabels reports whether frames to labels reach the programs of a device. On a bridge,
// the host's packet filter may drop them before (bridge-nf-call-iptables). The kernel
// cannot add receive addresses to a macvlan, ipvlan or VXLAN device. A bond in mode
// balance-tlb or balance-alb changes the source address of frames.
func hasLabels(l netlink.Link) bool {
	if bond, ok := l.(*netlink.Bond); ok && (bond.Mode == netlink.BOND_MODE_BALANCE_TLB || bond.Mode == netlink.BOND_MODE_BALANCE_ALB) {
		return false
	}
	return l.Attrs().EncapType == "ether" && slices.Contains([]string{"device", "veth", "vlan", "bond", "tuntap"}, l.Type())
}

// EthernetLinks returns one link for each IPv4 underlay address of the node on a fabric
// device. If the node does not offer direct, it returns none.
func EthernetLinks(s *Space, self model.Node, fabric []netlink.Link) (links []EthernetLink, err error) {
	if !slices.Contains(self.Encapsulations, model.Direct) {
		return nil, nil
	}
	all, err := listAddresses(s.Links)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		subnet, ok := PrefixOf(a.IPNet)
		if !ok || !subnet.Addr().Is4() || !slices.Contains(self.Underlay, subnet.Addr()) {
			continue
		}
		for _, l := range fabric {
			if l.Attrs().Index == a.LinkIndex && hasLabels(l) {
				links = append(links, EthernetLink{a.LinkIndex, subnet.Addr(), subnet.Masked()})
			}
		}
	}
	return links, nil
}

// Keep lets the fabric devices receive frames to the labels of networks. It adds these
// labels to the devices' filters, and removes other labels of the node. underlay: the
// node's underlay addresses. whole: list the filters even if the wanted labels have not
// changed. spared: networks whose labels stay in the filters that have them.
func (d *Labels) Keep(fabric []netlink.Link, underlay []netip.Addr, links []EthernetLink, networks, spared []uint32, whole bool) error {
	want, stay := map[label]bool{}, map[label]bool{}
	for _, l := range links {
		for _, network := range append([]uint32{0}, networks...) {
			want[label{l.Ifindex, direct.Label(network, l.Source)}] = true
		}
		for _, network := range spared {
			stay[label{l.Ifindex, direct.Label(network, l.Source)}] = true
		}
	}
	if !whole && d.kept != nil && maps.Equal(want, d.kept) {
		return nil
	}
	has, err := d.list(fabric, underlay)
	if err != nil {
		return err
	}
	var errs []error
	for l := range want {
		if has[l] {
			continue
		}
		if err := d.Space.Links.NeighAppend(l.entry()); err != nil {
			errs = append(errs, fmt.Errorf("add label %s to the filter of device %d, for the encapsulation direct: %w", l.mac, l.ifindex, err))
		}
	}
	for l := range d.kept { // these may have an earlier underlay address of the node
		has[l] = true
	}
	for l := range has {
		if want[l] || stay[l] {
			continue
		}
		if err := d.Space.Links.NeighDel(l.entry()); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, fmt.Errorf("remove label %s from the filter of device %d: %w", l.mac, l.ifindex, err))
		}
	}
	d.kept = want
	if errs != nil {
		d.kept = nil
	}
	return errors.Join(errs...)
}

// list returns the labels of the node that are in the filters of devices.
func (d *Labels) list(fabric []netlink.Link, underlay []netip.Addr) (map[label]bool, error) {
	has := map[label]bool{}
	for _, l := range fabric {
		index := l.Attrs().Index
		all, err := d.Space.Links.NeighList(index, unix.AF_BRIDGE)
		if err != nil {
			return nil, fmt.Errorf("list the addresses that device %s receives: %w", l.Attrs().Name, err)
		}
		for _, e := range all {
			if len(e.HardwareAddr) != 6 || e.LinkIndex != index || e.Flags&netlink.NTF_SELF == 0 && e.MasterIndex != index { // a bridge lists its addresses with itself as master
				continue
			}
			mac := model.MAC(e.HardwareAddr)
			if slices.ContainsFunc(underlay, func(a netip.Addr) bool { return direct.IsLabelOf(mac, a) }) {
				has[label{index, mac}] = true
			}
		}
	}
	return has, nil
}

// entry returns the label as an entry of the device's filter: its list of unicast
// addresses (bridge(8), fdb).
func (l label) entry() *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: l.ifindex, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF, HardwareAddr: l.mac[:]}
}
