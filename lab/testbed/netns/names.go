package netns

import (
	"fmt"
	"net"
	"net/netip"

	"windtunnel/lab/space"
)

func nodeSpace(id string, node int) string { return space.TestbedPrefix(id) + nodeName(node) }
func wireSpace(id string) string           { return space.TestbedPrefix(id) + "wire" }

// nodeName: a, b, c, … as the published experiments have it.
func nodeName(node int) string {
	if node < 26 {
		return string(rune('a' + node))
	}
	return fmt.Sprintf("n%d", node)
}

// fabricDevice names a node's device on a link. Names are unique in the whole
// testbed, for the NAPI threads that carry them.
func fabricDevice(node, link int) string { return fmt.Sprintf("fab%s%d", nodeName(node), link) }

// bondDevice names the one device over a node's links.
func bondDevice(node int) string { return "bond" + nodeName(node) }

func portDevice(node, link int) string { return fmt.Sprintf("port%s%d", nodeName(node), link) }

// mac returns a locally administered address that contains the device's numbers.
func mac(kind byte, node, link int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 'w', 't', kind, byte(node), byte(link)}
}

// The underlay's addresses: 172.31.LINK.NODE/24 and fd31:LINK::NODE/64.
func underlay(node, link, version int) netip.Prefix {
	if version == 6 {
		a := [16]byte{0: 0xfd, 1: 0x31, 3: byte(link), 14: byte(node >> 8), 15: byte(node + 1)}
		return netip.PrefixFrom(netip.AddrFrom16(a), 64)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, byte(link), byte(node + 1)}), 24)
}

// steady returns the address of a node with parallel links. It is on the loopback device,
// and every link leads to it.
func steady(node, version int) netip.Prefix {
	if version == 6 {
		a := [16]byte{0: 0xfd, 1: 0x31, 2: 0xff, 15: byte(node + 1)}
		return netip.PrefixFrom(netip.AddrFrom16(a), 128)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, 255, byte(node + 1)}), 32)
}
