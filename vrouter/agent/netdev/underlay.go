package netdev

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/layout"
)

// Underlay uses the kernel's routes to find the paths to other nodes.
type Underlay struct {
	space   *Space
	fabric  map[int]netlink.Link // underlay devices by ifindex
	devices map[int]string       // cached results of outside, by ifindex
}

// Way has the paths of the underlay from an address of this node to an address of another
// node.
type Way struct {
	Paths []layout.Path
	MTU   int    // smallest MTU of the paths, in bytes of the outer packet
	Why   string // reason why there is no path
}

// EtherMTU is the assumed MTU of a fabric without devices.
const EtherMTU = 1500

// NewUnderlay returns an Underlay that sends through the fabric devices.
func NewUnderlay(s *Space, fabric []netlink.Link) *Underlay {
	u := &Underlay{space: s, fabric: map[int]netlink.Link{}, devices: map[int]string{}}
	for _, l := range fabric {
		u.fabric[l.Attrs().Index] = l
	}
	return u
}

// MTU returns the smallest MTU of the fabric devices, in bytes.
func (u *Underlay) MTU() int {
	least := 0
	for _, l := range u.fabric {
		if m := l.Attrs().MTU; least == 0 || m < least {
			least = m
		}
	}
	if least == 0 {
		return EtherMTU
	}
	return least
}

// Way looks up the kernel's route between two addresses. With RTM_F_FIB_MATCH, the kernel
// returns all next hops of the route, and not only the next hop of one packet.
func (u *Underlay) Way(source, destination netip.Addr) Way {
	routes, err := u.space.Links.RouteGetWithOptions(destination.AsSlice(), &netlink.RouteGetOptions{SrcAddr: source.AsSlice(), FIBMatch: true})
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), err == nil && len(routes) == 0:
		return Way{Why: fmt.Sprintf("no route from %s to %s", source, destination)}
	case errors.Is(err, unix.EINVAL):
		return Way{Why: fmt.Sprintf("no route from %s to %s: the source is not an address of this node", source, destination)}
	case err != nil:
		return Way{Why: fmt.Sprintf("look up the route from %s to %s: %v", source, destination, err)}
	}
	return u.through(source, destination, routes[0])
}

func (u *Underlay) through(source, destination netip.Addr, r netlink.Route) Way {
	if r.Type != unix.RTN_UNICAST && r.Type != unix.RTN_UNSPEC {
		return Way{Why: fmt.Sprintf("the route from %s to %s is not a unicast route to another host", source, destination)}
	}
	hops := r.MultiPath
	if len(hops) == 0 {
		hops = []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw, Via: r.Via, Flags: r.Flags}}
	}
	w := Way{}
	for _, hop := range hops {
		l, ok := u.fabric[hop.LinkIndex]
		why := ""
		if ok {
			why, _ = Unusable(l)
		}
		switch {
		case !ok:
			w.Why = fmt.Sprintf("the route from %s to %s leaves by %s", source, destination, u.outside(hop.LinkIndex))
			continue
		case why != "":
			w.Why = fmt.Sprintf("the route from %s to %s leaves by %s, which %s", source, destination, l.Attrs().Name, why)
			continue
		case hop.Flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) != 0:
			w.Why = fmt.Sprintf("the next hop of the route from %s to %s by %s is dead", source, destination, l.Attrs().Name)
			continue
		case len(w.Paths) == layout.MaxPaths:
			continue
		}
		w.Paths = append(w.Paths, layout.PathOf(source, destination, gatewayOf(hop, destination), uint32(hop.LinkIndex)))
		mtu := l.Attrs().MTU
		if r.MTU > 0 {
			mtu = min(mtu, r.MTU)
		}
		if w.MTU == 0 || mtu < w.MTU {
			w.MTU = mtu
		}
	}
	if len(w.Paths) > 0 {
		w.Why = ""
	}
	slices.SortFunc(w.Paths, func(a, b layout.Path) int {
		return cmp.Or(cmp.Compare(a.Oif, b.Oif), a.Gateway.Addr().Compare(b.Gateway.Addr()))
	})
	return w
}

// Unusable returns why an underlay device cannot carry packets of the overlay, and the remedy; ""
// if it can. The text continues a sentence that begins with the device's name. The check is
// necessary because the kernel keeps the routes of a device that lost its carrier.
func Unusable(l netlink.Link) (why, remedy string) {
	switch a := l.Attrs(); {
	case !hasEthernet(l):
		return "has no Ethernet header", "use an Ethernet device; through tun, WireGuard or Tailscale, for example a gretap device"
	case a.Flags&net.FlagUp == 0:
		return "is down", "ip link set " + a.Name + " up"
	case a.RawFlags&unix.IFF_LOWER_UP == 0:
		return "has no carrier", "check its cable, and that the device at the other end is up"
	}
	return "", ""
}

// hasEthernet reports whether a device's packets have an Ethernet header. The programs read and
// write one.
func hasEthernet(l netlink.Link) bool {
	return l.Attrs().EncapType == "ether" || l.Attrs().EncapType == "loopback"
}

// gatewayOf returns the address of a next hop that the node resolves to a MAC
// address.
func gatewayOf(hop *netlink.NexthopInfo, destination netip.Addr) netip.Addr {
	if a, ok := netip.AddrFromSlice(hop.Gw); ok && !a.IsUnspecified() {
		return a.Unmap()
	}
	if via, ok := hop.Via.(*netlink.Via); ok {
		if a, ok := netip.AddrFromSlice(via.Addr); ok {
			return a.Unmap()
		}
	}
	return destination
}

// outside names a device that is not in the fabric, and says why a route must not use it.
func (u *Underlay) outside(index int) string {
	if text, ok := u.devices[index]; ok {
		return text
	}
	text := fmt.Sprintf("device %d", index)
	l, err := u.space.Links.LinkByIndex(index)
	if err == nil {
		text = "device " + l.Attrs().Name
	}
	if err == nil && !hasEthernet(l) {
		text += ", which has no Ethernet header"
	} else {
		text += ", which is not a fabric device; add it to fabric in the configuration, or correct the route"
	}
	u.devices[index] = text
	return text
}

// FabricDevices returns the configured devices. If none are configured, it returns
// the devices that have the addresses. missing has one text for each device that was
// not found or has no Ethernet header.
func FabricDevices(here *Devices, configured []string, addresses []netip.Addr) (fabric []netlink.Link, missing []string, err error) {
	add := func(l netlink.Link) {
		switch {
		case slices.ContainsFunc(fabric, func(f netlink.Link) bool { return f.Attrs().Index == l.Attrs().Index }):
		case hasEthernet(l):
			fabric = append(fabric, l)
		default:
			why, remedy := Unusable(l)
			missing = append(missing, fmt.Sprintf("fabric device %s %s; %s", l.Attrs().Name, why, remedy))
		}
	}
	for _, name := range configured {
		l, err := here.Name(name)
		if err != nil {
			return nil, nil, err
		}
		if l != nil {
			add(l)
			continue
		}
		missing = append(missing, fmt.Sprintf("fabric device %s does not exist", name))
	}
	if len(configured) > 0 || len(addresses) == 0 {
		return fabric, missing, nil
	}
	holders, err := devicesWith(here.space, addresses)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range addresses {
		index, ok := holders[a]
		if !ok {
			missing = append(missing, fmt.Sprintf("no device has this node's underlay address %s; add the address to a device, or list the devices under fabric in the configuration", a))
			continue
		}
		l, err := here.Index(index)
		if err != nil {
			return nil, nil, err
		}
		if l != nil {
			add(l)
		}
	}
	return fabric, missing, nil
}

// devicesWith maps addresses to the ifindex of their devices.
func devicesWith(s *Space, addresses []netip.Addr) (map[netip.Addr]int, error) {
	all, err := listAddresses(s.Links)
	if err != nil {
		return nil, err
	}
	holders := map[netip.Addr]int{}
	for _, a := range all {
		if prefix, ok := PrefixOf(a.IPNet); ok && slices.Contains(addresses, prefix.Addr()) {
			holders[prefix.Addr()] = a.LinkIndex
		}
	}
	return holders, nil
}
