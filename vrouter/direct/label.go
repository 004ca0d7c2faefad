// Package direct tests whether nodes on one Ethernet link can send packets to each other
// without a tunnel. The MAC addresses of such packets are labels.
package direct

import (
	"net/netip"

	"windtunnel/vrouter/model"
)

// labelMark is the lower 4 bits of a label's first byte. They mark a locally
// administered unicast address.
const labelMark = 0x06

// AllLabels is the highest network that has a label.
const AllLabels = 4095

// Label returns the MAC address that identifies a network on a node. network is 1 …
// 4095, or 0 for tests of the link. node is the node's IPv4 underlay address.
// datapath/bpf/direct.h describes the layout.
func Label(network uint32, node netip.Addr) model.MAC {
	a := node.As4()
	return model.MAC{byte(network>>4)&0xf0 | labelMark, byte(network), a[0], a[1], a[2], a[3]}
}

// IsLabelOf reports whether a MAC address is a label of a node.
func IsLabelOf(mac model.MAC, node netip.Addr) bool {
	return mac[0]&0x0f == labelMark && netip.AddrFrom4([4]byte(mac[2:])) == node
}
