package space

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Unreturnable returns the reasons why a device cannot be moved to another namespace and come back
// as it was: the routes, nexthop objects and devices that depend on it and that the lab cannot
// restore.
func (s *Space) Unreturnable(l netlink.Link) (why []string, err error) {
	index := l.Attrs().Index
	routes, err := s.dump(unix.RTM_NEWROUTE, make([]byte, unix.SizeofRtMsg))
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		switch {
		case r.isMultipathOver(index):
			why = append(why, fmt.Sprintf("the multipath route %s uses it", r.route()))
		case r.uses(index) && !isIP(r.Data[familyAt]):
			why = append(why, fmt.Sprintf("a route of address family %d uses it", r.Data[familyAt]))
		}
	}
	nexthops, err := s.dump(unix.RTM_NEWNEXTHOP, make([]byte, nexthopHeader))
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) { // Linux has them since 5.3
		return nil, err
	}
	for _, n := range nexthops {
		if n.uses(index) {
			why = append(why, fmt.Sprintf("nexthop object %d uses it (`ip nexthop`)", number(n.attributes()[unix.NHA_ID])))
		}
	}
	links, err := s.Links.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the devices in %s: %w", s, err)
	}
	for _, other := range links {
		if isOver(other, index) {
			why = append(why, fmt.Sprintf("%s device %s uses it", other.Type(), other.Attrs().Name))
		}
	}
	return why, nil
}

// isMultipathOver reports whether a route has several nexthops, one of them over the device
// with an index.
func (o object) isMultipathOver(index int) bool {
	for hops := o.attributes()[unix.RTA_MULTIPATH]; len(hops) >= unix.SizeofRtNexthop; {
		if number(hops[4:]) == index { // struct rtnexthop: length, flags, weight, index
			return true
		}
		length := max(int(binary.NativeEndian.Uint16(hops)), unix.SizeofRtNexthop)
		hops = hops[min(length, len(hops)):]
	}
	return false
}

// isOver reports whether a device, such as a VLAN or a tunnel, sends over the device with an
// index.
func isOver(l netlink.Link, index int) bool {
	if x, ok := l.(*netlink.Vxlan); ok {
		return x.VtepDevIndex == index
	}
	a := l.Attrs()
	return a.ParentIndex == index && a.NetNsID < 0 && l.Type() != "veth" // of a veth it is the other end
}
