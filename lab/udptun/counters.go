package udptun

import "sync/atomic"

// Counters is what a tunnel has carried and dropped since it was opened, in
// packets and in bytes of inner packets. What the socket's or the device's full
// queue dropped is the kernel's to count (RcvbufErrors of UDP, tx_dropped of
// the device).
type Counters struct {
	ToPeers   Direction `json:"to_peers"`   // read from the device
	FromPeers Direction `json:"from_peers"` // written to the device
}

// Direction is one way through the tunnel.
type Direction struct {
	Packets   uint64 `json:"packets"`
	Bytes     uint64 `json:"bytes"`
	Malformed uint64 `json:"malformed"` // not an IP packet of the length that it tells
	// NoRoute: to peers, no network of the table holds the destination.
	NoRoute uint64 `json:"no_route"`
	// UnknownPeer: from peers, nothing lies behind the sender.
	UnknownPeer uint64 `json:"unknown_peer"`
	// Transit: from peers, the destination lies behind a peer and not here.
	// Two nodes whose tables contradict each other would pass it to and fro.
	Transit uint64 `json:"transit"`
	Failed  uint64 `json:"failed"` // the kernel refused the packet: socket or device
}

// tally counts one direction while it runs. The padding keeps the directions,
// which two goroutines count, off one cache line.
type tally struct {
	packets, bytes, malformed, noRoute, unknownPeer, transit, failed atomic.Uint64

	_ [64]byte
}

func (t *tally) carried(bytes int) {
	t.packets.Add(1)
	t.bytes.Add(uint64(bytes))
}

func (t *tally) read() Direction {
	return Direction{
		Packets: t.packets.Load(), Bytes: t.bytes.Load(), Malformed: t.malformed.Load(), NoRoute: t.noRoute.Load(),
		UnknownPeer: t.unknownPeer.Load(), Transit: t.transit.Load(), Failed: t.failed.Load(),
	}
}
