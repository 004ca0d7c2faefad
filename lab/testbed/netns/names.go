package netns

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Prefix starts the names of all namespaces of the lab, so that Clean finds the namespaces
// of killed runs.
const (
	Prefix    = "wt-"
	RunPrefix = Prefix + "run"  // of measuring runs
	LabPrefix = Prefix + "lab-" // of testbeds that `windtunnel lab` made
)

// RunID is the id of a run's testbeds.
func RunID(pid int) string { return fmt.Sprintf("run%x", pid) }

// labName writes a suite's name without "-", which separates the parts of a namespace's name.
// Different suites have different names: each "." begins a pair.
var labName = strings.NewReplacer("-", "_", "_", "._", ".", "..")

// LabID is the id of the testbed of a suite that is brought up by hand: lab-quick_overlay of the
// suite quick-overlay. No SpacePrefix of such an id is the beginning of another one.
func LabID(suite string) string { return "lab-" + labName.Replace(suite) }

// SpacePrefix returns the start of the names of all namespaces of a testbed.
func SpacePrefix(id string) string { return Prefix + id + "-" }

func nodeSpace(id string, node int) string { return SpacePrefix(id) + nodeName(node) }
func wireSpace(id string) string           { return SpacePrefix(id) + "wire" }

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
