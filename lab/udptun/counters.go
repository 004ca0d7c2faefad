package udptun

import "sync/atomic"

// Counters counts the carried and dropped packets of a tunnel since it was opened,
// and the bytes of inner packets. The kernel counts drops in full queues of the
// socket and the device (RcvbufErrors of UDP, tx_dropped of the device).
type Counters struct {
	ToPeers   Direction `json:"to_peers"`   // read from the device
	FromPeers Direction `json:"from_peers"` // written to the device
}

// Direction is one way through the tunnel.
type Direction struct {
	Packets   uint64 `json:"packets"`
	Bytes     uint64 `json:"bytes"`
	Malformed uint64 `json:"malformed"` // not an IP packet of the length in its header
	// NoRoute: to peers, no network of the table contains the destination.
	NoRoute uint64 `json:"no_route"`
	// UnknownPeer: from peers, no network is behind the sender.
	UnknownPeer uint64 `json:"unknown_peer"`
	// Transit: from peers, the destination is behind a peer and not on this node. Two
	// nodes with contradicting tables would send it back and forth.
	Transit uint64 `json:"transit"`
	Failed  uint64 `json:"failed"` // the kernel refused the packet: socket or device
}

// tally counts one direction of a running tunnel. The padding separates the cache
// lines of the two directions, which two goroutines count.
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
