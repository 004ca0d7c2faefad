package agent

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// neighbour is the next hop of a path on an underlay device.
type neighbour struct {
	oif     int
	address netip.Addr
}

// neighbours keeps the MAC addresses of underlay next hops resolved. A frame that is
// not IP can enter a tunnel only while they are. The kernel refreshes managed entries
// (NTF_EXT_MANAGED, Linux 5.16) before they become stale.
type neighbours struct {
	space *space
	kept  map[neighbour]bool
}

// keep makes the set of managed neighbours equal to want. It does not change
// permanent entries.
func (n *neighbours) keep(want map[neighbour]bool) error {
	managed, fixed, err := n.list()
	if err != nil {
		return err
	}
	for w := range want {
		if managed[w] || fixed[w] {
			continue
		}
		if err := n.space.links.NeighSet(managedEntry(w)); err != nil {
			return fmt.Errorf("set the managed neighbour %s on device %d: %w", w.address, w.oif, err)
		}
	}
	for k := range n.kept {
		if !want[k] && managed[k] {
			n.space.links.NeighDel(managedEntry(k)) // fails if it is already deleted
		}
	}
	n.kept = want
	return nil
}

// list returns the managed and the permanent neighbours.
func (n *neighbours) list() (managed, fixed map[neighbour]bool, err error) {
	managed, fixed = map[neighbour]bool{}, map[neighbour]bool{}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		all, err := n.space.links.NeighList(0, family)
		if err != nil {
			return nil, nil, fmt.Errorf("list neighbours: %w", err)
		}
		for _, e := range all {
			a, ok := netip.AddrFromSlice(e.IP)
			if !ok {
				continue
			}
			k := neighbour{e.LinkIndex, a.Unmap()}
			if e.FlagsExt&netlink.NTF_EXT_MANAGED != 0 {
				managed[k] = true
			} else if e.State&(unix.NUD_PERMANENT|unix.NUD_NOARP) != 0 {
				fixed[k] = true
			}
		}
	}
	return managed, fixed, nil
}

func managedEntry(n neighbour) *netlink.Neigh {
	family := netlink.FAMILY_V6
	if n.address.Is4() {
		family = netlink.FAMILY_V4
	}
	return &netlink.Neigh{LinkIndex: n.oif, Family: family, IP: n.address.AsSlice(), State: netlink.NUD_NONE, FlagsExt: netlink.NTF_EXT_MANAGED}
}
