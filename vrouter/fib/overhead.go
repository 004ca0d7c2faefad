package fib

import "windtunnel/vrouter/model"

// Header lengths in bytes.
const (
	ethernetHeader = 14
	ipv4Header     = 20 // RFC 791, without options
	ipv6Header     = 40 // RFC 8200
	udpHeader      = 8
	greHeader      = 4 // RFC 2784, without options
	labelEntry     = 4 // RFC 3032
	vxlanHeader    = 8 // RFC 7348
)

// Smallest MTUs of IP.
const (
	leastMTU4 = 576  // RFC 791: every host accepts packets of this size
	leastMTU6 = 1280 // RFC 8200
)

// Overhead returns the number of bytes that an encapsulation adds to an inner IP
// packet, with the outer IP header. VXLAN always carries an inner Ethernet header.
func Overhead(e model.Encapsulation, underlay6, ethernet bool) int {
	if e == model.Direct {
		return 0
	}
	if e == model.Translated {
		return ipv6Header - ipv4Header
	}
	n := ipv4Header
	if underlay6 {
		n = ipv6Header
	}
	switch e {
	case model.MPLSoGRE:
		n += greHeader + labelEntry
	case model.MPLSoUDP:
		n += udpHeader + labelEntry
	case model.VXLAN:
		n += udpHeader + vxlanHeader
		ethernet = true
	}
	if ethernet {
		n += ethernetHeader
	}
	return n
}
