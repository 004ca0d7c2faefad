package meter

import "windtunnel/lab/suite"

// Facts are the inputs of a trial's figures that no node's meter knows.
type Facts struct {
	Colocated bool // both endpoints are on the sender's node
	Direction suite.Direction
	// Throughput is the received payload that the tool reports, in bits per
	// second, both directions together; 0 if it reports none. It replaces TCP's
	// count of the window where that is missing (UDP, short connections).
	Throughput float64
	// Loss is the share of a UDP stream's datagrams that the tool reports as
	// lost; nil if it reports none.
	Loss *float64
	// Headers is the length of all headers of a data frame on the fabric, from
	// Ethernet on, with tunnel headers; 0 if unknown. See TCPHeaders.
	Headers int
	// WireCPU is the CPU time of the fabric's work in the window, in seconds by
	// CPU; nil if the fabric does not measure it.
	WireCPU map[int]float64
	// Ports is the window of a meter over the wire's ports, in path order; nil
	// if the fabric has none.
	Ports *Delta
	// Engine is the engine's CPU time in the window, in seconds.
	Engine float64
	// SenderEndpoints and ReceiverEndpoints are the containers of the trial;
	// empty if the nodes themselves are the endpoints.
	SenderEndpoints, ReceiverEndpoints []string
}

// RefusedByPorts is the number of frames that the wire lost because a port did
// not accept them from a NIC.
func (f Facts) RefusedByPorts() uint64 {
	sum := uint64(0)
	for _, d := range f.Ports.devices() {
		sum += d.RxDrops
	}
	return sum
}

// Labels of tracked tool processes if both sides run on one node.
const (
	SenderSide   = "sender"
	ReceiverSide = "receiver"
)
