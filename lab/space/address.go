package space

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// address is a message in which the kernel describes an address of a device. The kernel makes
// the address again, with all attributes, if it gets the message back.
type address []byte

func (a address) Len() int          { return len(a) }
func (a address) Serialize() []byte { return a }

// Offsets in the header, linux/if_addr.h.
const (
	familyAt = 0
	bitsAt   = 1
	flagsAt  = 2
	linkAt   = 4
)

// attributes returns the attributes by type, of a message with a header of some bytes. A change
// of a value changes the message.
func attributes(message []byte, header int) map[uint16][]byte {
	list, _ := nl.ParseRouteAttr(message[header:]) // the kernel's messages are well-formed
	all := map[uint16][]byte{}
	for _, a := range list {
		all[a.Attr.Type&nl.NLA_TYPE_MASK] = a.Value
	}
	return all
}

// number converts a 32-bit attribute; 0 if it is missing.
func number(value []byte) int {
	if len(value) < 4 {
		return 0
	}
	return int(binary.NativeEndian.Uint32(value))
}

// dump lists the messages of a type (RTM_NEW…) in the namespace.
func (s *Space) dump(kind uint16, header []byte) (messages [][]byte, err error) {
	err = s.Do(func() (err error) {
		request := nl.NewNetlinkRequest(int(kind)+2, unix.NLM_F_DUMP) // RTM_GET… follows RTM_NEW… and RTM_DEL…
		request.AddData(address(header))
		messages, err = request.Execute(unix.NETLINK_ROUTE, kind)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list objects of type %d in %s: %w", kind, s, err)
	}
	return messages, nil
}

// addressesOf lists the addresses of a device, without those that the kernel makes on its own:
// temporary IPv6 addresses.
func (s *Space) addressesOf(index int) (list []address, err error) {
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		header := make([]byte, unix.SizeofIfAddrmsg)
		header[familyAt] = family
		all, err := s.dump(unix.RTM_NEWADDR, header)
		if err != nil {
			return nil, err
		}
		if family == unix.AF_INET6 { // the kernel lists the newest first, and the order decides about source addresses
			slices.Reverse(all)
		}
		for _, a := range all {
			temporary := family == unix.AF_INET6 && a[flagsAt]&unix.IFA_F_TEMPORARY != 0
			if number(a[linkAt:]) == index && a[familyAt] == family && !temporary {
				list = append(list, a)
			}
		}
	}
	return list, nil
}

// prefix returns the network for which the kernel makes a route; "" if it makes none.
func (a address) prefix() string {
	all := attributes(a, unix.SizeofIfAddrmsg)
	if number(all[unix.IFA_FLAGS])&ifaFlagNoPrefixRoute != 0 {
		return ""
	}
	ip := net.IP(all[unix.IFA_ADDRESS])
	return (&net.IPNet{IP: ip.Mask(net.CIDRMask(int(a[bitsAt]), 8*len(ip))), Mask: net.CIDRMask(int(a[bitsAt]), 8*len(ip))}).String()
}

// addAddress adds an address to the device with an index. It is no error if the address exists
// already. Duplicate address detection is off for IPv6 addresses.
func (s *Space) addAddress(a address, index int) error {
	a = slices.Clone(a)
	binary.NativeEndian.PutUint32(a[linkAt:], uint32(index))
	if flags := attributes(a, unix.SizeofIfAddrmsg)[unix.IFA_FLAGS]; a[familyAt] == unix.AF_INET6 && flags != nil {
		binary.NativeEndian.PutUint32(flags, uint32(number(flags)|ifaFlagNoDAD))
	}
	return s.Do(func() error {
		request := nl.NewNetlinkRequest(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_ACK)
		request.AddData(a)
		if _, err := request.Execute(unix.NETLINK_ROUTE, 0); !errors.Is(err, unix.EEXIST) {
			return err
		}
		return nil
	})
}

// command returns the command of iproute2 that makes the address.
func (a address) command(device string) string {
	all := attributes(a, unix.SizeofIfAddrmsg)
	local, peer := all[unix.IFA_LOCAL], all[unix.IFA_ADDRESS]
	text := "ip address add "
	if local != nil && !slices.Equal(local, peer) {
		text += net.IP(local).String() + " peer "
	}
	return fmt.Sprintf("%s%s/%d dev %s", text, net.IP(peer), a[bitsAt], device)
}
