package direct

import (
	"encoding/binary"
	"net/netip"

	"windtunnel/vrouter/model"
)

// EtherType of test frames: the first EtherType that IEEE 802 reserves for local
// experiments.
const EtherType = 0x88b5

// message is the payload of a test frame.
type message struct {
	kind    byte
	number  uint64 // number of the request; its reply has the same number
	bridges bool   // of a reply: the node restores bridged frames
	last    uint32 // of a reply: the highest network whose label the node receives
}

const (
	request byte = iota + 1
	reply
	announcement // switches learn the port of its source address
)

// ability is a bit of the byte behind the number: the node that replies restores bridged
// frames, also if their source is the label of routed packets. Nodes of earlier versions reply
// with 0, or with another bit if they restore only frames with another source.
const ability = 2

var broadcast = model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// magic distinguishes test frames from other frames with the same EtherType.
const magic = "vrouter direct 1"

// An Ethernet frame has at least 60 bytes without its frame check sequence.
const (
	frameLength  = 60
	headerLength = 14
)

// frame returns an Ethernet frame with a message, from one label to another.
func (m message) frame(to, from model.MAC) []byte {
	b := make([]byte, 0, frameLength)
	b = append(b, to[:]...)
	b = append(b, from[:]...)
	b = binary.BigEndian.AppendUint16(b, EtherType)
	b = append(b, magic...)
	b = append(b, m.kind)
	b = binary.BigEndian.AppendUint64(b, m.number)
	return b[:frameLength]
}

// parse reads a test frame. ok is false for other frames.
func parse(b []byte) (m message, to, from model.MAC, ok bool) {
	const length = headerLength + len(magic) + 1 + 8
	if len(b) < length || string(b[headerLength:headerLength+len(magic)]) != magic {
		return m, to, from, false
	}
	to, from = model.MAC(b[:6]), model.MAC(b[6:12])
	m.kind = b[headerLength+len(magic)]
	m.number = binary.BigEndian.Uint64(b[length-8:])
	m.last = AllLabels
	if len(b) >= length+3 {
		m.bridges = b[length]&ability != 0
		if last := binary.BigEndian.Uint16(b[length+1:]); last != 0 { // 0: of an earlier version
			m.last = uint32(last)
		}
	}
	return m, to, from, true
}

// nodeOf returns the underlay address in a label of network 0. ok is false for other MAC
// addresses.
func nodeOf(mac model.MAC) (node netip.Addr, ok bool) {
	node = netip.AddrFrom4([4]byte(mac[2:]))
	return node, mac == Label(0, node)
}
