package system

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/lab/suite"
)

// Changer is implemented by systems whose network the lab can change while traffic passes.
type Changer interface {
	// Changes returns the changes that the lab can make on each node, by kind.
	Changes() map[suite.Change]Change
}

// Change is a change of the network on one node, and its reverse. Make and Undo return when packets
// use the changed network.
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

// joins returns the change in which the node's spare container joins the network.
func joins(join, leave func(n *Node, e Endpoint) error) Change {
	return Change{
		Make: func(n *Node) error { return join(n, n.Spare) },
		Undo: func(n *Node) error { return leave(n, n.Spare) },
	}
}

// bridgeChanges has the change of systems that connect containers to the node's bridge.
func bridgeChanges(s System) map[suite.Change]Change {
	return map[suite.Change]Change{suite.ChangePorts: joins(func(n *Node, e Endpoint) error { return connectContainer(n, e, MTU(s, n.MTU)) }, removeVif)}
}

// routedChanges is bridgeChanges for systems whose nodes have separate subnets.
func routedChanges(s System) map[suite.Change]Change {
	return map[suite.Change]Change{suite.ChangePorts: joins(func(n *Node, e Endpoint) error { return connectRoutedContainer(n, e, MTU(s, n.MTU)) }, removeVif)}
}

// removeVif removes the container's device and its other end on the node.
func removeVif(n *Node, e Endpoint) error { return n.Space.Remove(vifName(e)) }

// spareUnderlay returns an address of the fabric that no node has.
func spareUnderlay(n *Node) netip.Addr {
	a := n.Underlay[0].As4()
	a[3] = 250
	return netip.AddrFrom4(a)
}

// A container of a node that joins, and a destination that is an address for documents (RFC 5737).
var (
	spareV4          = netip.MustParsePrefix("10.31.255.254/16")
	spareV6          = netip.MustParsePrefix("fd31:c::ff:fffe/64")
	spareMAC         = net.HardwareAddr{0x02, 'w', 't', 0xff, 0xff, 0xfe}
	spareDestination = netip.MustParsePrefix("198.51.100.0/24")
)

// spareRules is the number of rules that a change of policies adds.
const spareRules = 10
