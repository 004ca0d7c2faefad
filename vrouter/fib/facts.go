package fib

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"

	"windtunnel/vrouter/layout"
)

// Facts are the inputs of Compile in addition to the desired state.
type Facts struct {
	// Ports are this node's ports that have a device, by name. Compile omits the
	// other ports from the tables and warns about them.
	Ports map[string]PortFact
	// Way returns the underlay paths from one of this node's addresses to another
	// node's address; none if the address is unreachable. mtu is the smallest MTU
	// of the paths, in bytes of the outer IP packet. nil: no node is reachable.
	Way func(source, destination netip.Addr) (paths []layout.Path, mtu int)
	// Link reports whether packets can be sent directly to an underlay address from the
	// device with ifindex oif; 0: from any device. For a node's address in its locator,
	// Link reports whether translated packets reach the node. If Link is nil, there are no
	// links.
	Link func(a netip.Addr, oif uint32) Link
	// Silent are the underlay addresses of other nodes that do not answer. Packets to a node avoid
	// them if the node has another address.
	Silent map[netip.Addr]bool
	// Handovers are the changes of encapsulations that are under way, by name of the other node.
	Handovers map[string]Handover
	// LastLabel is the highest network whose label this node receives; 0: all.
	LastLabel uint32
	// LabelsOf returns the highest network whose label the node with an underlay address
	// receives. Packets of higher networks to this node need another encapsulation. If
	// LabelsOf is nil, all nodes receive all labels.
	LabelsOf func(a netip.Addr) uint32
	// MTU is the fabric's MTU in bytes, for nodes without a path; 0: 1500.
	MTU    int
	Limits Limits
	// Services: the workloads of networks with node_access reach services.
	Services bool
	// Grouping has the groups of this node's ports; nil: no port has one. If its sets exceed
	// Limits.Sets, closed groups allow no flow.
	Grouping *Grouping
	// External are the routes of routers outside the fleet; nil: there are none. Their next hops are
	// not nodes.
	External *External
	// Partial: the error of a single network is added to Tables.Refused, so that
	// the other networks work. Otherwise Compile returns that error.
	Partial bool
}

// Link is the state of the Ethernet link to another node's underlay address. It decides
// whether the encapsulation direct can be used.
type Link int

const (
	NoLink       Link = iota // no common Ethernet link with IPv4, or no locators
	LinkFails                // tests did not pass, or the other node is down
	LinkUntested             // the test has no result yet
	LinkWorks                // tests pass in both directions
	LinkBridges              // the same, and the other node restores bridged frames
)

// PortFact is the device of a port.
type PortFact struct {
	Ifindex uint32
	Peer    bool // a veth or netkit device whose peer is the workload's device
	Netkit  bool // the device is the primary of a netkit pair
}

const defaultMTU = 1500 // of Facts

func (f Facts) withDefaults() Facts {
	f.MTU = cmp.Or(f.MTU, defaultMTU)
	if f.Way == nil {
		f.Way = func(netip.Addr, netip.Addr) ([]layout.Path, int) { return nil, 0 }
	}
	if f.Link == nil {
		f.Link = func(netip.Addr, uint32) Link { return NoLink }
	}
	if f.LabelsOf == nil {
		f.LabelsOf = func(netip.Addr) uint32 { return math.MaxUint32 }
	}
	return f
}

// Limits are the maximum numbers of vifs and nexthops, whose ids are indexes in the data
// path, and of the entries of sets; 0: unlimited. Package datapath checks the sizes of the other
// tables.
type Limits struct {
	Nexthops uint32 // ids 1 … Nexthops−1: entry 0 discards
	Vifs     uint32
	Sets     uint32 // identities, and allowed flows
}

// Limits of the data path's structures (bpf/types.h).
const (
	mostFlood = layout.MaxMembers // of a replication list
)

// LimitError reports that the state needs more entries than a table has.
type LimitError struct {
	Table   string // the data path's map (bpf/maps.h)
	What    string // kind of its entries
	Of      string // owner of the list; empty: the table of the node
	Setting string // key of the node's configuration that makes the table larger; empty: there is none
	Want    int
	Limit   uint32
}

func (e *LimitError) Error() string {
	if e.Of != "" {
		return fmt.Sprintf("%s: %d %s are wanted, at most %d fit; make it l3, or split it", e.Of, e.Want, e.What, e.Limit)
	}
	return fmt.Sprintf("table %s: %d %s are wanted, its limit is %d; raise %s in the node's configuration", e.Table, e.Want, e.What, e.Limit, e.Setting)
}
