package udptun

import (
	"encoding/binary"
	"net/netip"
)

const (
	ipv4Header = 20 // without options, RFC 791 section 3.1
	ipv6Header = 40 // RFC 8200 section 3
)

// destination returns the destination address of an inner packet. It refuses a
// packet whose length differs from the length in its header, so that the tunnel
// counts the packet. The kernel would ignore padding, and would drop a truncated
// packet. destination also refuses IPv6 jumbograms (RFC 2675), whose payload length
// is 0, because no datagram can carry them. It does not verify header checksums,
// because the kernel does.
func destination(packet []byte) (to netip.Addr, ok bool) {
	n := len(packet)
	if n >= ipv4Header && packet[0]>>4 == 4 {
		header, total := int(packet[0]&0x0f)*4, int(binary.BigEndian.Uint16(packet[2:4]))
		if header >= ipv4Header && header <= n && total == n {
			return netip.AddrFrom4([4]byte(packet[16:20])), true
		}
	}
	if n >= ipv6Header && packet[0]>>4 == 6 && ipv6Header+int(binary.BigEndian.Uint16(packet[4:6])) == n {
		return netip.AddrFrom16([16]byte(packet[24:40])), true
	}
	return netip.Addr{}, false
}
