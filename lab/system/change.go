package system

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/phrase"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// Changer is implemented by systems whose network the lab can change while traffic passes.
type Changer interface {
	// Changes returns the changes that the lab can make on each node, by kind.
	Changes() map[suite.Change]Change
}

// Change makes and undoes a change of the network on one node. Make and Undo return when packets use the changed
// network.
type Change struct{ Make, Undo func(n *Node) error }

// ChangeOf returns the change of a kind; the error says which kinds the system has.
func ChangeOf(s System, kind suite.Change) (Change, error) {
	changer, ok := s.(Changer)
	if !ok {
		return Change{}, fmt.Errorf("the lab cannot change the network of %s while traffic passes", s.Name())
	}
	all := changer.Changes()
	if c, ok := all[kind]; ok {
		return c, nil
	}
	var kinds []string
	for kind := range all {
		kinds = append(kinds, string(kind))
	}
	slices.Sort(kinds)
	return Change{}, fmt.Errorf("the lab cannot change the %s of %s while traffic passes, only its %s", kind, s.Name(), phrase.And(kinds))
}

// containers lists the containers that can be connected: the endpoints, and the spare one.
func (n *Node) containers() []Endpoint {
	if n.Spare.Name == "" {
		return n.Endpoints
	}
	return append(slices.Clip(n.Endpoints), n.Spare)
}

// joins returns the change in which the spare container of a node joins the network. join and leave connect and
// disconnect a container.
func joins(join, leave func(n *Node, e Endpoint) error) Change {
	return Change{
		Make: func(n *Node) error { return join(n, n.Spare) },
		Undo: func(n *Node) error { return leave(n, n.Spare) },
	}
}

// bridgePorts returns the change of ports for systems that connect containers to the node's bridge.
func bridgePorts(s System) Change {
	return joins(func(n *Node, e Endpoint) error { return connectContainer(n, e, MTU(s, n.MTU)) }, removeVif)
}

// routedChanges has the changes of systems whose nodes have separate subnets: the bridge is the gateway, and
// the node has routes.
func routedChanges(s System) map[suite.Change]Change {
	return map[suite.Change]Change{
		suite.ChangePorts:  joins(func(n *Node, e Endpoint) error { return connectRoutedContainer(n, e, MTU(s, n.MTU)) }, removeVif),
		suite.ChangeRoutes: bridgeRoute,
	}
}

// bridgeRoute is the change that routes a destination to the node's bridge.
var bridgeRoute = func() Change {
	with := func(change func(*netlink.Handle, *netlink.Route) error) func(n *Node) error {
		return func(n *Node) error {
			l, err := n.Space.Link(bridgeDevice)
			if err != nil {
				return err
			}
			if err := change(n.Space.Links, &netlink.Route{LinkIndex: l.Attrs().Index, Dst: space.IPNet(spareDestination)}); err != nil {
				return fmt.Errorf("change the route to %s in %s: %w", spareDestination, n.Space.Name, err)
			}
			return nil
		}
	}
	return Change{Make: with((*netlink.Handle).RouteAdd), Undo: with((*netlink.Handle).RouteDel)}
}()

// bridgeEntry returns the change of an entry in the forwarding table of a device.
func bridgeEntry(device func(n *Node) string, entry func(n *Node) *netlink.Neigh) Change {
	with := func(change func(*netlink.Handle, *netlink.Neigh) error) func(n *Node) error {
		return func(n *Node) error {
			l, err := n.Space.Link(device(n))
			if err != nil {
				return err
			}
			e := entry(n)
			e.LinkIndex, e.Family = l.Attrs().Index, unix.AF_BRIDGE
			if err := change(n.Space.Links, e); err != nil {
				return fmt.Errorf("change the entry of %s in the forwarding table of %s in %s: %w", e.HardwareAddr, device(n), n.Space.Name, err)
			}
			return nil
		}
	}
	return Change{Make: with((*netlink.Handle).NeighAppend), Undo: with((*netlink.Handle).NeighDel)}
}

// iptablesRules returns the change that drops forwarded packets to some addresses. iptables runs with the
// environment that env returns.
func iptablesRules(env func(n *Node) []string) Change {
	var to []string
	for a := spareDestination.Addr(); len(to) < spareRules; a = a.Next() {
		to = append(to, a.String())
	}
	with := func(operation string) func(n *Node) error {
		return func(n *Node) error {
			_, err := n.commandWith(env(n), "iptables", "-w", "2", operation, "FORWARD", "-d", strings.Join(to, ","), "-j", "DROP") // a rule for each address
			return err
		}
	}
	return Change{Make: with("-A"), Undo: with("-D")}
}

// removeVif removes the container's device and its other end on the node.
func removeVif(n *Node, e Endpoint) error { return n.Space.Remove(vifName(e)) }

// spareUnderlay returns the underlay address of the imaginary node that joins at node n. No real node of an emulated fabric
// has this address.
func spareUnderlay(n *Node) netip.Addr {
	a := n.Underlay[0].As4()
	a[3] = byte(250 - n.Index)
	return netip.AddrFrom4(a)
}

// Addresses of a container on the imaginary node that joins, and a destination without hosts: RFC 5737 reserves it
// for documents.
var (
	spareV4          = netip.MustParsePrefix("10.31.255.254/16")
	spareV6          = netip.MustParsePrefix("fd31:c::ff:fffe/64")
	spareMAC         = net.HardwareAddr{0x02, 'w', 't', 0xff, 0xff, 0xfe}
	spareDestination = netip.MustParsePrefix("198.51.100.0/24")
)

// spareRules is the number of rules that a change of policies adds.
const spareRules = 10
