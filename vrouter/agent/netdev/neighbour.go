package netdev

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Neighbour is the next hop of a path on an underlay device.
type Neighbour struct {
	OIF     int
	Address netip.Addr
}

// Neighbours keeps the MAC addresses of underlay next hops resolved. A frame that is
// not IP can enter a tunnel only while the address is resolved. The kernel refreshes managed entries
// (NTF_EXT_MANAGED, Linux 5.16) before they become stale.
type Neighbours struct {
	Space *Space
	Kept  map[Neighbour]bool
}

// Keep makes the set of managed neighbours equal to want. It does not change
// permanent entries.
func (n *Neighbours) Keep(want map[Neighbour]bool) error {
	managed, fixed, err := n.List()
	if err != nil {
		return err
	}
	for w := range want {
		if managed[w] || fixed[w] {
			continue
		}
		if err := n.Space.Links.NeighSet(managedEntry(w)); err != nil {
			return fmt.Errorf("set the managed neighbour %s on device %d: %w", w.Address, w.OIF, err)
		}
	}
	for k := range n.Kept {
		if !want[k] && managed[k] {
			n.Space.Links.NeighDel(managedEntry(k)) // fails if it is already deleted
		}
	}
	n.Kept = want
	return nil
}

// List returns the managed and the permanent neighbours.
func (n *Neighbours) List() (managed, fixed map[Neighbour]bool, err error) {
	managed, fixed = map[Neighbour]bool{}, map[Neighbour]bool{}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		all, err := n.Space.Links.NeighList(0, family)
		if err != nil {
			return nil, nil, fmt.Errorf("list neighbours: %w", err)
		}
		for _, e := range all {
			a, ok := netip.AddrFromSlice(e.IP)
			if !ok {
				continue
			}
			k := Neighbour{e.LinkIndex, a.Unmap()}
			if e.FlagsExt&netlink.NTF_EXT_MANAGED != 0 {
				managed[k] = true
			} else if e.State&(unix.NUD_PERMANENT|unix.NUD_NOARP) != 0 {
				fixed[k] = true
			}
		}
	}
	return managed, fixed, nil
}

func managedEntry(n Neighbour) *netlink.Neigh {
	family := netlink.FAMILY_V6
	if n.Address.Is4() {
		family = netlink.FAMILY_V4
	}
	return &netlink.Neigh{LinkIndex: n.OIF, Family: family, IP: n.Address.AsSlice(), State: netlink.NUD_NONE, FlagsExt: netlink.NTF_EXT_MANAGED}
}
