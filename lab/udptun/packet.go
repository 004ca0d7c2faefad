package udptun

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// Why an inner packet is refused.
var (
	errEmpty   = errors.New("the packet is empty")
	errVersion = errors.New("the packet is neither IPv4 nor IPv6")
	errHeader  = errors.New("the packet is shorter than its header")
	errLength  = errors.New("the packet has another length than its header says")
)

const (
	ipv4Header = 20 // without options, RFC 791 section 3.1
	ipv6Header = 40 // RFC 8200 section 3
)

// destination reads where an inner packet goes. It refuses a packet whose
// length is not the one that its header tells, since the kernel would take
// padding for nothing and a cut packet for damage, uncounted here. Header
// checksums are the kernel's to verify.
func destination(packet []byte) (netip.Addr, error) {
	if len(packet) == 0 {
		return netip.Addr{}, errEmpty
	}
	switch packet[0] >> 4 {
	case 4:
		return destination4(packet)
	case 6:
		return destination6(packet)
	}
	return netip.Addr{}, errVersion
}

func destination4(packet []byte) (netip.Addr, error) {
	if len(packet) < ipv4Header {
		return netip.Addr{}, errHeader
	}
	if header := int(packet[0]&0x0f) * 4; header < ipv4Header || header > len(packet) {
		return netip.Addr{}, errHeader
	}
	if int(binary.BigEndian.Uint16(packet[2:4])) != len(packet) {
		return netip.Addr{}, errLength
	}
	return netip.AddrFrom4([4]byte(packet[16:20])), nil
}

// destination6 refuses jumbograms (RFC 2675), whose payload length is 0: no
// datagram could carry them.
func destination6(packet []byte) (netip.Addr, error) {
	if len(packet) < ipv6Header {
		return netip.Addr{}, errHeader
	}
	if ipv6Header+int(binary.BigEndian.Uint16(packet[4:6])) != len(packet) {
		return netip.Addr{}, errLength
	}
	return netip.AddrFrom16([16]byte(packet[24:40])), nil
}
