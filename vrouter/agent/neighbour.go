package agent

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// neighbour is whom a path's packets are handed to on an underlay device.
type neighbour struct {
	oif     int
	address netip.Addr
}

// neighbours keeps the paths' next hops resolved: a frame that is not IP can
// only be sent into a tunnel while its neighbour is known. The kernel does the
// work (NTF_EXT_MANAGED, Linux 5.16): it asks anew before an entry goes stale.
type neighbours struct {
	space *space
	kept  map[neighbour]bool
}

// keep makes the set of resolved neighbours equal to want. Entries that
// somebody set by hand are left alone. It returns how many were set.
func (n *neighbours) keep(want map[neighbour]bool) (set int, err error) {
	managed, fixed, err := n.list()
	if err != nil {
		return 0, err
	}
	for w := range want {
		if managed[w] || fixed[w] {
			continue
		}
		if err := n.space.links.NeighSet(managedEntry(w)); err != nil {
			return set, fmt.Errorf("keep neighbour %s on device %d resolved: %w", w.address, w.oif, err)
		}
		set++
	}
	for k := range n.kept {
		if !want[k] && managed[k] {
			n.space.links.NeighDel(managedEntry(k)) // one that is gone already is as wanted
		}
	}
	n.kept = want
	return set, nil
}

// list returns the neighbours that the kernel keeps resolved, and those that
// are set for good.
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
