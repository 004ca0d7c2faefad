package space

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// object is a message in which the kernel describes an address, a neighbour or a route.
// The kernel makes the object again, with all attributes, if it gets the message back:
// `ip route save` and `ip route restore` do the same.
type object struct {
	Type uint16 // RTM_NEWADDR, RTM_NEWNEIGH or RTM_NEWROUTE
	Data []byte
}

// objectTypes has, for each type, the length of its header in bytes, and the flags of the request
// that adds an object.
var objectTypes = map[uint16]struct{ header, flags int }{
	unix.RTM_NEWADDR:    {unix.SizeofIfAddrmsg, unix.NLM_F_CREATE},
	unix.RTM_NEWNEIGH:   {unix.SizeofNdMsg, unix.NLM_F_CREATE | unix.NLM_F_REPLACE}, // the kernel may have resolved the neighbour
	unix.RTM_NEWROUTE:   {unix.SizeofRtMsg, unix.NLM_F_CREATE | unix.NLM_F_APPEND},  // in the order of the dump
	unix.RTM_NEWNEXTHOP: {nexthopHeader, 0},
}

const nexthopHeader = 8 // struct nhmsg, linux/nexthop.h

func (o object) Len() int          { return len(o.Data) }
func (o object) Serialize() []byte { return o.Data }

// Offsets in the headers, linux/if_addr.h, linux/neighbour.h and linux/rtnetlink.h.
const (
	familyAt      = 0
	bitsAt        = 1 // of an address, and of a route's destination
	linkAt        = 4 // of an address and of a neighbour
	addressFlagAt = 2
	stateAt       = 8
	neighFlagAt   = 10
	tosAt         = 3
	tableAt       = 4
	protocolAt    = 5
	typeAt        = 7
	routeFlagsAt  = 8
)

// attributes returns the attributes by type. A change of a value changes the object.
func (o object) attributes() map[uint16][]byte {
	list, _ := nl.ParseRouteAttr(o.Data[objectTypes[o.Type].header:]) // the kernel's messages are well-formed
	all := map[uint16][]byte{}
	for _, a := range list {
		all[a.Attr.Type&nl.NLA_TYPE_MASK] = a.Value
	}
	return all
}

// link returns the bytes of the device's index; nil if the object has none or several devices.
func (o object) link() []byte {
	switch o.Type {
	case unix.RTM_NEWROUTE:
		return o.attributes()[unix.RTA_OIF]
	case unix.RTM_NEWNEXTHOP:
		return o.attributes()[unix.NHA_OIF]
	}
	return o.Data[linkAt : linkAt+4]
}

// uses reports whether an object belongs to the device with an index.
func (o object) uses(index int) bool { return number(o.link()) == index }

// number converts a 32-bit attribute; 0 if it is missing.
func number(value []byte) int {
	if len(value) < 4 {
		return 0
	}
	return int(binary.NativeEndian.Uint32(value))
}

func isIP(family byte) bool { return family == unix.AF_INET || family == unix.AF_INET6 }

// dump lists the objects of a type in the namespace. header can select a kind of objects.
func (s *Space) dump(kind uint16, header []byte) (list []object, err error) {
	err = s.Do(func() error {
		request := nl.NewNetlinkRequest(int(kind)+2, unix.NLM_F_DUMP) // RTM_GET… follows RTM_NEW… and RTM_DEL…
		request.AddData(object{Data: header})
		messages, err := request.Execute(unix.NETLINK_ROUTE, kind)
		for _, m := range messages {
			list = append(list, object{kind, m})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list objects of type %d in %s: %w", kind, s, err)
	}
	return list, nil
}

// objectsOf lists the objects of a device that the kernel drops when the device changes its
// namespace, and does not add again.
func (s *Space) objectsOf(index int) (list []object, err error) {
	addresses4, addresses6, proxies := make([]byte, unix.SizeofIfAddrmsg), make([]byte, unix.SizeofIfAddrmsg), make([]byte, unix.SizeofNdMsg)
	addresses4[familyAt], addresses6[familyAt], proxies[neighFlagAt] = unix.AF_INET, unix.AF_INET6, unix.NTF_PROXY
	for _, d := range []struct {
		kind        uint16
		header      []byte
		newestFirst bool // as the kernel lists IPv6 addresses: the order decides about source addresses
	}{
		{unix.RTM_NEWADDR, addresses4, false}, {unix.RTM_NEWADDR, addresses6, true},
		{unix.RTM_NEWNEIGH, make([]byte, unix.SizeofNdMsg), false}, {unix.RTM_NEWNEIGH, proxies, false},
		{unix.RTM_NEWROUTE, make([]byte, unix.SizeofRtMsg), false},
	} {
		all, err := s.dump(d.kind, d.header)
		if err != nil {
			return nil, err
		}
		if d.newestFirst {
			slices.Reverse(all)
		}
		for _, o := range all {
			if o.uses(index) && isIP(o.Data[familyAt]) && o.isSetting() {
				list = append(list, o)
			}
		}
	}
	return list, nil
}

// isSetting reports whether an object must be stored. The kernel makes the others on its own:
// temporary addresses, neighbours that it has resolved, and cached and local routes.
func (o object) isSetting() bool {
	switch d := o.Data; o.Type {
	case unix.RTM_NEWADDR:
		return d[familyAt] == unix.AF_INET || d[addressFlagAt]&unix.IFA_F_TEMPORARY == 0
	case unix.RTM_NEWNEIGH:
		return binary.NativeEndian.Uint16(d[stateAt:])&unix.NUD_PERMANENT != 0 || d[neighFlagAt]&unix.NTF_PROXY != 0
	default: // network managers also add routes of the protocol "kernel"
		return number(d[routeFlagsAt:])&unix.RTM_F_CLONED == 0 && (d[tableAt] != unix.RT_TABLE_LOCAL || d[protocolAt] != unix.RTPROT_KERNEL)
	}
}

// expiresAt is the offset of a route's lifetime in RTA_CACHEINFO, in ticks of 1/100 s.
const expiresAt, ticks = 8, 100

// onto returns a copy of the object for the device with the given index. The copy lacks flags and
// attributes that the kernel reports but does not accept. Duplicate address detection is off for a
// copy of an IPv6 address.
func (o object) onto(index int) object {
	o.Data = append([]byte(nil), o.Data...)
	binary.NativeEndian.PutUint32(o.link(), uint32(index))
	a := o.attributes()
	switch {
	case o.Type == unix.RTM_NEWADDR && o.Data[familyAt] == unix.AF_INET6:
		if flags := a[unix.IFA_FLAGS]; flags != nil {
			binary.NativeEndian.PutUint32(flags, uint32(number(flags)|ifaFlagNoDAD))
		}
	case o.Type == unix.RTM_NEWROUTE:
		flags := o.Data[routeFlagsAt:]
		binary.NativeEndian.PutUint32(flags, uint32(number(flags)&(unix.RTNH_F_ONLINK|unix.RTNH_F_PERVASIVE)))
		if info := a[unix.RTA_CACHEINFO]; len(info) >= expiresAt+4 && number(info[expiresAt:]) > 0 {
			seconds := nl.Uint32Attr(uint32(number(info[expiresAt:])/ticks + 1))
			o.Data = append(o.Data, nl.NewRtAttr(unix.RTA_EXPIRES, seconds).Serialize()...)
		}
	}
	return o
}

// add adds an object in the namespace. It is no error if the object exists already.
func (s *Space) add(o object) error {
	return s.Do(func() error {
		request := nl.NewNetlinkRequest(int(o.Type), objectTypes[o.Type].flags|unix.NLM_F_ACK)
		request.AddData(o)
		if _, err := request.Execute(unix.NETLINK_ROUTE, 0); !errors.Is(err, unix.EEXIST) {
			return err
		}
		return nil
	})
}
