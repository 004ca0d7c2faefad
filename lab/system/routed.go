package system

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/space"
)

// In a routed system each node has a separate subnet, as in Kubernetes' simplest
// networks. The node's bridge is the containers' gateway, and the node routes packets
// to other subnets.
const (
	routedBits4 = 20
	routedBits6 = 112
)

// routedNetwork contains every node's subnet.
var routedNetwork = netip.MustParsePrefix("10.31.0.0/16")

// routedSubnets returns the subnets of node i, which contain its containers'
// addresses.
func routedSubnets(i int) (v4, v6 netip.Prefix) {
	four := netip.AddrFrom4([4]byte{10, 31, byte(i << 4), 0})
	six := netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x31, 3: 0x0c, 13: byte(i)})
	return netip.PrefixFrom(four, routedBits4), netip.PrefixFrom(six, routedBits6)
}

// gateway returns a subnet's first address, which the node's bridge has.
func gateway(subnet netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(subnet.Masked().Addr().Next(), subnet.Bits())
}

// gatewayMAC returns the MAC address of node i's bridge.
func gatewayMAC(i int) net.HardwareAddr { return net.HardwareAddr{0x02, 'w', 't', byte(i), 0xff, 0xff} }

// connectRouted creates the node's bridge with the gateways' addresses. It connects the
// containers to the bridge, and sets their default routes.
func connectRouted(n *Node, mtu int) error {
	if err := addBridge(n, bridgeDevice, mtu); err != nil {
		return err
	}
	// Otherwise the bridge takes the lowest address of its ports. So the address of the containers' gateway
	// could change when a container joins or leaves (br_stp_recalculate_bridge_id, net/bridge/br_stp_if.c).
	l, err := n.Space.Link(bridgeDevice)
	if err != nil {
		return err
	}
	if err := n.Space.Links.LinkSetHardwareAddr(l, gatewayMAC(n.Index)); err != nil {
		return fmt.Errorf("set the MAC address of %s in %s: %w", bridgeDevice, n.Space.Name, err)
	}
	if err := n.Space.DeviceSysctl("ipv6", bridgeDevice, "disable_ipv6", "0"); err != nil {
		return err
	}
	for _, key := range []string{"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"} {
		if err := n.Space.Sysctl(key, "1"); err != nil {
			return err
		}
	}
	v4, v6 := routedSubnets(n.Index)
	for _, subnet := range []netip.Prefix{v4, v6} {
		if err := n.Space.Connect(bridgeDevice, gateway(subnet)); err != nil {
			return err
		}
	}
	for _, e := range n.Endpoints {
		if err := connectRoutedContainer(n, e, mtu); err != nil {
			return err
		}
	}
	return nil
}

// connectRoutedContainer connects a container to the node's bridge, and sets its default routes.
func connectRoutedContainer(n *Node, e Endpoint, mtu int) error {
	v4, v6 := routedSubnets(n.Index)
	e.V4, e.V6 = netip.PrefixFrom(e.V4.Addr(), v4.Bits()), netip.PrefixFrom(e.V6.Addr(), v6.Bits())
	if err := connectContainer(n, e, mtu); err != nil {
		return err
	}
	for _, subnet := range []netip.Prefix{v4, v6} {
		if e.Guest != nil {
			e.Guest.Config.Gateways = append(e.Guest.Config.Gateways, gateway(subnet).Addr())
			continue
		}
		if err := routeAll(e.Space, gateway(subnet).Addr()); err != nil {
			return err
		}
	}
	return nil
}

// routeAll routes all packets of the gateway's IP version over it.
func routeAll(s *space.Space, via netip.Addr) error {
	all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if via.Is6() {
		all = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return routeVia(s, via, all)
}

// routeVia adds or replaces the route to a network over a gateway, with the lab's
// congestion control.
func routeVia(s *space.Space, via netip.Addr, to netip.Prefix) error {
	r := &netlink.Route{Dst: space.IPNet(to), Gw: net.IP(via.AsSlice()), Congctl: space.CongestionControl()}
	if err := s.Links.RouteReplace(r); err != nil {
		return fmt.Errorf("route to %s via %s in %s: %w", to, via, s.Name, err)
	}
	return nil
}

// disconnectRouted removes the devices that connectRouted created.
func disconnectRouted(n *Node) error {
	return errors.Join(disconnectContainers(n), n.Space.Remove(bridgeDevice))
}

// removeRoutes removes the node's routes to parts of routedNetwork.
func removeRoutes(n *Node) error {
	routes, err := n.Space.Links.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list the routes in %s: %w", n.Name, err)
	}
	for _, r := range routes {
		if !inRoutedNetwork(r.Dst) {
			continue
		}
		if err := n.Space.Links.RouteDel(&r); err != nil {
			return fmt.Errorf("remove the route to %s in %s: %w", r.Dst, n.Name, err)
		}
	}
	return nil
}

// inRoutedNetwork reports whether a network is a part of routedNetwork; nil is the default
// route's.
func inRoutedNetwork(part *net.IPNet) bool {
	if part == nil {
		return false
	}
	bits, _ := part.Mask.Size()
	return space.IPNet(routedNetwork).Contains(part.IP) && bits >= routedNetwork.Bits()
}

// routeInto sets a tunnel device of layer 3 up, and adds routes over it to the
// subnets of all other nodes.
func routeInto(n *Node, device string, mtu int) error {
	l, err := n.Space.Link(device)
	if err != nil {
		return err
	}
	if err := n.Space.Links.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("set the MTU of %s to %d in %s: %w", device, mtu, n.Space.Name, err)
	}
	// The device needs no link-local address. With one, IPv6 would send queries that
	// have no receiver.
	if err := n.Space.DeviceSysctl("ipv6", device, "addr_gen_mode", "1"); err != nil {
		return err
	}
	if err := n.Space.Up(device); err != nil {
		return err
	}
	for i := range n.peers() {
		v4, v6 := routedSubnets(i)
		for _, subnet := range []netip.Prefix{v4, v6} {
			r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: space.IPNet(subnet)}
			if err := n.Space.Links.RouteAdd(r); err != nil {
				return fmt.Errorf("route %s into %s in %s: %w", subnet, device, n.Space.Name, err)
			}
		}
	}
	return nil
}
