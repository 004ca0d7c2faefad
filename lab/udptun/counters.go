package udptun

import "sync/atomic"

// Counters counts the carried and dropped packets of a tunnel since it was opened,
// and the bytes of inner packets. The kernel counts drops in full queues of the
// socket and the device (RcvbufErrors of UDP, tx_dropped of the device).
type Counters struct {
	ToPeers   Direction `json:"to_peers"`   // read from the device
	FromPeers Direction `json:"from_peers"` // written to the device
}

// Direction has the counters of one direction.
type Direction struct {
	Packets   uint64 `json:"packets"`
	Bytes     uint64 `json:"bytes"`
	Malformed uint64 `json:"malformed"` // not an IP packet of the length in its header
	// NoRoute counts packets to peers whose destination is in no network of the
	// table.
	NoRoute uint64 `json:"no_route"`
	// UnknownPeer counts packets from an address that is no peer in the table.
	UnknownPeer uint64 `json:"unknown_peer"`
	// Transit counts packets from peers whose destination is behind a peer and not
	// on this node. Two nodes with contradicting tables would send such a packet
	// back and forth.
	Transit uint64 `json:"transit"`
	Failed  uint64 `json:"failed"` // the kernel refused the packet: socket or device
}

// tally has the counters of one direction of a running tunnel. Each direction has
// its own goroutine, so padding keeps their counters in separate cache lines.
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
