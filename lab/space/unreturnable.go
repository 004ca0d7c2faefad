package space

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Unreturnable returns the reasons why a device cannot be moved to another namespace and come back
// as it was: what depends on it, other than addresses and the routes that the kernel makes for them.
func (s *Space) Unreturnable(l netlink.Link) (why []string, err error) {
	index := l.Attrs().Index
	routes, err1 := s.ownRoutes(l)
	neighbours, err2 := s.ownNeighbours(index)
	nexthops, err3 := s.nexthops(index)
	links, err4 := s.Links.LinkList()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("list what uses device %s in %s: %w", l.Attrs().Name, s, err)
	}
	for _, r := range routes {
		why = append(why, fmt.Sprintf("the route %s uses it, and the lab restores only addresses; remove the route (`ip route`)", describeRoute(r)))
	}
	for _, n := range neighbours {
		why = append(why, fmt.Sprintf("it has the permanent or proxy neighbour %s, and the lab restores only addresses; remove the neighbour (`ip neighbour`)", n.IP))
	}
	for _, id := range nexthops {
		why = append(why, fmt.Sprintf("nexthop object %d uses it, and the lab restores only addresses; remove the object (`ip nexthop`)", id))
	}
	for _, other := range links {
		if isOver(other, index) {
			why = append(why, fmt.Sprintf("%s device %s uses it; remove that device", other.Type(), other.Attrs().Name))
		}
	}
	return why, nil
}

// metrics has the default metrics of the routes that the kernel makes for addresses.
var metrics = map[int]int{netlink.FAMILY_V4: 0, netlink.FAMILY_V6: 256}

// ownRoutes lists the routes over a device that the kernel does not make for its addresses.
func (s *Space) ownRoutes(l netlink.Link) (list []netlink.Route, err error) {
	addresses, err := s.addressesOf(l)
	if err != nil {
		return nil, err
	}
	var prefixes []string
	for _, a := range addresses {
		if n := network(a); a.Flags&ifaFlagNoPrefixRoute == 0 {
			prefixes = append(prefixes, (&net.IPNet{IP: n.IP.Mask(n.Mask), Mask: n.Mask}).String())
		}
	}
	index := l.Attrs().Index
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6, netlink.FAMILY_MPLS} {
		routes, err := s.Links.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if family == netlink.FAMILY_MPLS && errors.Is(err, unix.EOPNOTSUPP) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, r := range routes {
			over := r.LinkIndex == index || slices.ContainsFunc(r.MultiPath, func(hop *netlink.NexthopInfo) bool { return hop.LinkIndex == index })
			made := r.Protocol == unix.RTPROT_KERNEL && (r.Table == unix.RT_TABLE_LOCAL || r.Dst != nil && slices.Contains(prefixes, r.Dst.String()) && r.Priority == metrics[family])
			if over && !made {
				list = append(list, r)
			}
		}
	}
	return list, nil
}

// describeRoute describes a route as iproute2 does: destination, gateway, table and metric.
func describeRoute(r netlink.Route) string {
	text := "default"
	if r.MPLSDst != nil {
		text = fmt.Sprintf("of label %d", *r.MPLSDst)
	} else if r.Dst != nil && !strings.HasSuffix(r.Dst.String(), "/0") {
		text = r.Dst.String()
	}
	if r.Gw != nil {
		text += " via " + r.Gw.String()
	}
	if r.Table != unix.RT_TABLE_MAIN {
		text += fmt.Sprintf(" table %d", r.Table)
	}
	if r.Priority != 0 {
		text += fmt.Sprintf(" metric %d", r.Priority)
	}
	return text
}

// ownNeighbours lists the permanent and the proxy neighbours of a device. index is its ifindex.
func (s *Space) ownNeighbours(index int) (list []netlink.Neigh, err error) {
	all, err := s.Links.NeighList(index, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	passing := func(n netlink.Neigh) bool { return n.State&netlink.NUD_PERMANENT == 0 || n.Family == unix.AF_BRIDGE }
	proxies, err := s.Links.NeighProxyList(index, netlink.FAMILY_ALL)
	return append(proxies, slices.DeleteFunc(all, passing)...), err
}

// nexthops lists the IDs of the nexthop objects that use a device. index is its ifindex.
func (s *Space) nexthops(index int) (ids []uint32, err error) {
	const header = 8 // struct nhmsg, linux/nexthop.h
	err = s.Do(func() error {
		request := nl.NewNetlinkRequest(unix.RTM_GETNEXTHOP, unix.NLM_F_DUMP)
		request.AddRawData(make([]byte, header))
		messages, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEXTHOP)
		for _, m := range messages {
			attributes, _ := nl.ParseRouteAttrAsMap(m[header:]) // the kernel's messages are well-formed
			if over, ok := attributes[unix.NHA_OIF]; ok && int(nl.NativeEndian().Uint32(over.Value)) == index {
				ids = append(ids, nl.NativeEndian().Uint32(attributes[unix.NHA_ID].Value))
			}
		}
		return err
	})
	if errors.Is(err, unix.EOPNOTSUPP) { // Linux has them since 5.3
		return nil, nil
	}
	return ids, err
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
