package meter

import "windtunnel/lab/suite"

// Facts are what the figures of a trial need and no node's meter knows.
type Facts struct {
	Colocated bool // both endpoints are on the sender's node
	Direction suite.Direction
	// Throughput is the payload that the tool says was received, bits per
	// second, both directions together; 0 where it says nothing. It stands in
	// where TCP's own count of the window is missing (UDP, short connections).
	Throughput float64
	// Loss is the share of a UDP stream's datagrams that the tool says were lost;
	// nil where it says nothing.
	Loss *float64
	// Headers is the length of all headers of a data frame on the fabric, from
	// Ethernet on, tunnel included; 0 where it is not known. See TCPHeaders.
	Headers int
	// WireCPU is the fabric's own work in the window, CPU seconds by CPU; nil
	// where the fabric cannot tell.
	WireCPU map[int]float64
	// Ports is the window of a meter over the wire's ports, in path order; nil
	// where the fabric has none.
	Ports *Delta
	// Engine is the engine's own CPU time in the window, seconds.
	Engine float64
	// SenderEndpoints and ReceiverEndpoints are the containers that take part;
	// empty where the nodes themselves do.
	SenderEndpoints, ReceiverEndpoints []string
}

// RefusedByPorts is how many frames the wire lost because a port did not take
// them from a NIC.
func (f Facts) RefusedByPorts() uint64 {
	sum := uint64(0)
	if f.Ports == nil {
		return sum
	}
	for _, ns := range f.Ports.Namespaces {
		for _, d := range ns.Devices {
			sum += d.RxDrops
		}
	}
	return sum
}

// Labels under which tool processes are tracked where both sides run on one
// node.
const (
	SenderSide   = "sender"
	ReceiverSide = "receiver"
)
