package fib

import "net/netip"

// Facts are the inputs of Compile in addition to the desired state.
type Facts struct {
	// Ports are this node's ports that have a device, by name. Compile omits the
	// other ports from the tables and warns about them.
	Ports map[string]PortFact
	// Way returns the underlay paths from one of this node's addresses to another
	// node's address; none if the address is unreachable. mtu is the smallest MTU
	// of the paths, in bytes of the outer IP packet. nil: no node is reachable.
	Way func(source, destination netip.Addr) (paths []Path, mtu int)
	// Link returns whether packets can be sent directly to an underlay address, by the
	// device with an ifindex; 0: by any. nil: to no address.
	Link func(a netip.Addr, oif uint32) Link
	// MTU is the fabric's MTU in bytes, for nodes without a path; 0: 1500.
	MTU    int
	Limits Limits
	// Partial: the error of a single network is added to Tables.Refused, so that
	// the other networks work. Otherwise Compile returns that error.
	Partial bool
	// FlowIdle, FlowUnanswered and FlowClosed are seconds until a flow is forgotten: an
	// idle one, one whose other side never sent, and a closed or half-open TCP one.
	// 0: the defaults below.
	FlowIdle, FlowUnanswered, FlowClosed uint32
}

// Link is the state of the way to another node's underlay address for direct.
type Link int

const (
	NoLink       Link = iota // no common Ethernet link with IPv4
	LinkFails                // frames with labels do not pass, or the other node does not run
	LinkUntested             // a common link, and no result of the test yet
	LinkWorks                // frames with labels as MAC addresses pass in both directions
)

// PortFact is the device of a port.
type PortFact struct {
	Ifindex uint32
	Device  string
	Peer    bool   // a veth whose peer is the workload's device
	MTU     uint16 // largest MTU of the device, in bytes; 0: unlimited
}

// Values for zero fields of Facts.
const (
	defaultMTU            = 1500
	DefaultFlowIdle       = 180
	DefaultFlowUnanswered = 30
	DefaultFlowClosed     = 10
)

func (f Facts) withDefaults() Facts {
	if f.MTU == 0 {
		f.MTU = defaultMTU
	}
	if f.FlowIdle == 0 {
		f.FlowIdle = DefaultFlowIdle
	}
	if f.FlowUnanswered == 0 {
		f.FlowUnanswered = DefaultFlowUnanswered
	}
	if f.FlowClosed == 0 {
		f.FlowClosed = DefaultFlowClosed
	}
	if f.Way == nil {
		f.Way = func(netip.Addr, netip.Addr) ([]Path, int) { return nil, 0 }
	}
	if f.Link == nil {
		f.Link = func(netip.Addr, uint32) Link { return NoLink }
	}
	return f
}
