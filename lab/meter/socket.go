package meter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// Socket is an established TCP socket with the fields of its TCP_INFO.
type Socket struct {
	Local         netip.AddrPort `json:"local"`
	Remote        netip.AddrPort `json:"remote"`
	Cookie        uint64         `json:"cookie"`
	RTT           int64          `json:"rtt_ns"` // smoothed; 0 before the first sample
	MSS           uint32         `json:"snd_mss_bytes"`
	Cwnd          uint32         `json:"snd_cwnd_segments"`
	TotalRetrans  uint32         `json:"total_retrans"` // wraps
	BytesAcked    uint64         `json:"bytes_acked"`
	BytesReceived uint64         `json:"bytes_received"` // received in order, read by the program or not
}

// PortRange selects sockets whose local or remote port is from First to Last.
// The zero range selects all.
type PortRange struct{ First, Last uint16 }

// Has reports whether the port is in the range.
func (r PortRange) Has(port uint16) bool {
	return r == (PortRange{}) || port >= r.First && port <= r.Last
}

// Layout of an answer of sock_diag: struct inet_diag_msg and the attributes
// after it (include/uapi/linux/inet_diag.h).
const (
	diagMessageLength = 72
	diagInfo          = 2 // INET_DIAG_INFO: struct tcp_info
)

// tcpInfoLength covers the fields up to bytes_received (Linux 4.1). Newer
// kernels only append fields.
const tcpInfoLength = 136

// parseSocket parses the payload of one answer.
func parseSocket(b []byte) (Socket, error) {
	if len(b) < diagMessageLength {
		return Socket{}, fmt.Errorf("read sock_diag answer: %d bytes, want at least %d", len(b), diagMessageLength)
	}
	local, remote, err := diagAddresses(b)
	if err != nil {
		return Socket{}, err
	}
	s := Socket{
		Local: local, Remote: remote,
		Cookie: uint64(binary.NativeEndian.Uint32(b[44:])) | uint64(binary.NativeEndian.Uint32(b[48:]))<<32,
	}
	info, err := diagAttribute(b[diagMessageLength:], diagInfo)
	if err != nil {
		return Socket{}, err
	}
	return s, s.readTCPInfo(info)
}

// diagAttribute returns the value of the first attribute of a kind. An attribute is
// its length (16 bits), its kind (16 bits) and the value, padded to 4 bytes.
func diagAttribute(b []byte, kind uint16) ([]byte, error) {
	const head = 4
	const kindMask = 0x3fff // two bits are flags (NLA_TYPE_MASK)
	for len(b) >= head {
		length := int(binary.NativeEndian.Uint16(b))
		if length < head || length > len(b) {
			return nil, fmt.Errorf("read sock_diag answer: an attribute has length %d, but %d bytes remain", length, len(b))
		}
		if binary.NativeEndian.Uint16(b[2:])&kindMask == kind {
			return b[head:length], nil
		}
		b = b[min((length+3)&^3, len(b)):]
	}
	return nil, errors.New("read sock_diag answer: it lacks TCP_INFO")
}

func diagAddresses(b []byte) (local, remote netip.AddrPort, err error) {
	const (
		inet  = 2
		inet6 = 10
	)
	port := func(at int) uint16 { return binary.BigEndian.Uint16(b[at:]) }
	var from, to netip.Addr
	switch b[0] {
	case inet:
		from, to = netip.AddrFrom4([4]byte(b[8:])), netip.AddrFrom4([4]byte(b[24:]))
	case inet6:
		from, to = netip.AddrFrom16([16]byte(b[8:])).Unmap(), netip.AddrFrom16([16]byte(b[24:])).Unmap()
	default:
		return local, remote, fmt.Errorf("read sock_diag answer: address family %d, want 2 or 10", b[0])
	}
	return netip.AddrPortFrom(from, port(4)), netip.AddrPortFrom(to, port(6)), nil
}

// readTCPInfo parses struct tcp_info (include/uapi/linux/tcp.h).
func (s *Socket) readTCPInfo(b []byte) error {
	if len(b) < tcpInfoLength {
		return fmt.Errorf("read TCP_INFO: %d bytes, want at least %d (Linux 4.1)", len(b), tcpInfoLength)
	}
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	const microsecond = 1000
	s.MSS, s.RTT, s.Cwnd, s.TotalRetrans = u32(16), int64(u32(68))*microsecond, u32(80), u32(100)
	s.BytesAcked, s.BytesReceived = u64(120), u64(128)
	return nil
}
