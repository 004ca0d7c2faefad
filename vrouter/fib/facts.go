package fib

import "net/netip"

// Facts are what the tables depend on beside the desired state.
type Facts struct {
	// Ports are this node's ports that have a device, by name. Others are left
	// out of the tables, with a warning.
	Ports map[string]PortFact
	// Way tells how packets get from one of this node's underlay addresses to
	// another node's: no paths where there is no way now. mtu is the smallest
	// of the paths', bytes of the outer IP packet. nil: there is no way to
	// anybody.
	Way func(source, destination netip.Addr) (paths []Path, mtu int)
	// MTU is the fabric's own in bytes, for what has no way yet; 0: 1500.
	MTU    int
	Limits Limits
	// Partial notes what is wrong with one network in Tables.Refused, so that the
	// others work. Else it is an error.
	Partial bool
	// FlowIdle and FlowClosed are seconds until an idle flow, and a closed or
	// half-open one, is forgotten; 0: the defaults below.
	FlowIdle, FlowClosed uint32
}

// PortFact is what is known of a port's device.
type PortFact struct {
	Ifindex uint32
	Device  string
	Peer    bool   // a veth whose other end is the workload's
	MTU     uint16 // of a device that can take no more; 0: what the tables say
}

// What Facts that say nothing stand for.
const (
	defaultMTU        = 1500
	DefaultFlowIdle   = 180
	DefaultFlowClosed = 10
)

func (f Facts) withDefaults() Facts {
	if f.MTU == 0 {
		f.MTU = defaultMTU
	}
	if f.FlowIdle == 0 {
		f.FlowIdle = DefaultFlowIdle
	}
	if f.FlowClosed == 0 {
		f.FlowClosed = DefaultFlowClosed
	}
	if f.Way == nil {
		f.Way = func(netip.Addr, netip.Addr) ([]Path, int) { return nil, 0 }
	}
	return f
}
