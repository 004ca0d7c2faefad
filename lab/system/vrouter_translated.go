package system

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
)

// vrouterTranslated is the encapsulation of nodes that translate IPv4 packets to
// IPv6. vrouter uses it between nodes on different links. On one link vrouter writes
// labels as MAC addresses instead, but only if the underlay addresses are IPv4. All
// nodes of the lab are on one link, so the lab gives them IPv6 underlay addresses.
const vrouterTranslated = "translated"

// vrouterUnderlay6 returns the IPv6 underlay address of a node, by node index.
func vrouterUnderlay6(node int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x31, 3: 0xfa, 15: byte(node + 1)}), 64)
}

// vrouterLocator returns the prefix of a node's translated addresses, by node index.
func vrouterLocator(node int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x31, 3: 0x10, 7: byte(node + 1)}), 64)
}

// addUnderlay6 adds the node's IPv6 underlay address, and routes to the locators of
// the other nodes.
func addUnderlay6(n *Node) error {
	if err := n.Space.Address(n.Fabric[0], vrouterUnderlay6(n.Index)); err != nil {
		return err
	}
	for i := range n.peers() {
		if err := routeVia(n.Space, vrouterUnderlay6(i).Addr(), vrouterLocator(i)); err != nil {
			return err
		}
	}
	return nil
}

// removeUnderlay6 removes the address and the routes that addUnderlay6 added.
func removeUnderlay6(n *Node) error {
	var errs []error
	for i := range n.peers() {
		err := n.Space.Links.RouteDel(&netlink.Route{Dst: space.IPNet(vrouterLocator(i))})
		if err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("remove the route to %s: %w", vrouterLocator(i), err))
		}
	}
	l, err := n.Space.Link(n.Fabric[0])
	if err == nil {
		err = n.Space.Links.AddrDel(l, &netlink.Addr{IPNet: space.IPNet(vrouterUnderlay6(n.Index))})
	}
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		errs = append(errs, fmt.Errorf("remove address %s from %s: %w", vrouterUnderlay6(n.Index), n.Fabric[0], err))
	}
	return errors.Join(errs...)
}

// awaitTranslation waits until the node translates packets to every other node that
// has endpoints. Until then the node sends these packets through a tunnel.
func awaitTranslation(path string, n *Node) error {
	others := map[int]bool{}
	for _, p := range n.Everywhere {
		if p.Node != n.Index {
			others[p.Node] = true
		}
	}
	return awaitVRouter(path, n, fmt.Sprintf("does not translate packets to %d nodes", len(others)), func(nexthops string) bool {
		return strings.Count(nexthops, " "+vrouterTranslated+" "+vrouterLocator(n.Index).Addr().String()) >= len(others)
	}, "nh", "list")
}
