package space

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// addressesOf lists the addresses of a device, without those that the kernel makes on its own:
// temporary IPv6 addresses.
func (s *Space) addressesOf(l netlink.Link) (list []netlink.Addr, err error) {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		all, err := s.Links.AddrList(l, family)
		if err != nil {
			return nil, fmt.Errorf("list addresses of %s in %s: %w", l.Attrs().Name, s, err)
		}
		if family == netlink.FAMILY_V6 { // the kernel lists the newest first, and the order decides about source addresses
			slices.Reverse(all)
		}
		for _, a := range all {
			if family == netlink.FAMILY_V4 || a.Flags&unix.IFA_F_TEMPORARY == 0 {
				list = append(list, a)
			}
		}
	}
	return list, nil
}

// network returns the network of an address: that of the peer, if there is one.
func network(a netlink.Addr) *net.IPNet { return cmp.Or(a.Peer, a.IPNet) }

// addAddress adds an address to a device. It is no error if the address exists already. Duplicate
// address detection is off for IPv6 addresses.
func (s *Space) addAddress(l netlink.Link, a netlink.Addr) error {
	if a.IP.To4() == nil {
		a.Flags |= ifaFlagNoDAD
	} else if a.Broadcast = a.Broadcast.To4(); a.Broadcast == nil {
		a.Broadcast = net.IPv4zero // none: netlink would add one
	}
	if err := s.Links.AddrAdd(l, &a); !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// addressCommand returns the command of iproute2 that makes an address.
func addressCommand(a netlink.Addr, device string) string {
	text := "ip address add "
	if a.Peer != nil {
		text += a.IP.String() + " peer "
	}
	return text + network(a).String() + " dev " + device
}
