package meter

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Socket is an established TCP socket with its TCP_INFO.
type Socket struct {
	Local         netip.AddrPort `json:"local"`
	Remote        netip.AddrPort `json:"remote"`
	State         uint8          `json:"state"` // 1 is ESTABLISHED (include/net/tcp_states.h)
	Cookie        uint64         `json:"cookie"`
	Inode         uint32         `json:"inode"`
	Congestion    string         `json:"congestion,omitempty"`
	RTT           int64          `json:"rtt_ns"` // smoothed; 0 before the first sample
	RTTVar        int64          `json:"rttvar_ns"`
	MinRTT        int64          `json:"min_rtt_ns"`
	MSS           uint32         `json:"snd_mss_bytes"`
	Cwnd          uint32         `json:"snd_cwnd_segments"`
	TotalRetrans  uint32         `json:"total_retrans"` // wraps
	SegsOut       uint32         `json:"segs_out"`      // wraps
	SegsIn        uint32         `json:"segs_in"`       // wraps
	BytesAcked    uint64         `json:"bytes_acked"`
	BytesReceived uint64         `json:"bytes_received"` // received in order, read by the program or not
	DeliveryRate  uint64         `json:"delivery_rate_bytes_per_s"`
	PacingRate    uint64         `json:"pacing_rate_bytes_per_s,omitempty"` // 2^64−1 where unlimited
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
	diagCongestion    = 4 // INET_DIAG_CONG: name, ended by 0
)

// tcpInfoLength covers the fields up to delivery_rate (Linux 4.9). Newer
// kernels only append fields.
const tcpInfoLength = 168

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
		Local: local, Remote: remote, State: b[1],
		Cookie: uint64(binary.NativeEndian.Uint32(b[44:])) | uint64(binary.NativeEndian.Uint32(b[48:]))<<32,
		Inode:  binary.NativeEndian.Uint32(b[68:]),
	}
	found := false
	err = eachAttribute(b[diagMessageLength:], func(kind uint16, value []byte) error {
		switch kind {
		case diagInfo:
			found = true
			return s.readTCPInfo(value)
		case diagCongestion:
			s.Congestion = untilZero(value)
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("read sock_diag answer: no TCP_INFO in it")
	}
	return s, err
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
		return fmt.Errorf("read TCP_INFO: %d bytes, want at least %d (Linux 4.9)", len(b), tcpInfoLength)
	}
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	const microsecond = 1000
	s.MSS, s.Cwnd, s.TotalRetrans = u32(16), u32(80), u32(100)
	s.RTT, s.RTTVar = int64(u32(68))*microsecond, int64(u32(72))*microsecond
	s.PacingRate, s.BytesAcked, s.BytesReceived = u64(104), u64(120), u64(128)
	s.SegsOut, s.SegsIn = u32(136), u32(140)
	if min := u32(148); min != ^uint32(0) {
		s.MinRTT = int64(min) * microsecond
	}
	s.DeliveryRate = u64(160)
	return nil
}

// eachAttribute visits netlink attributes: length and kind of 16 bits each,
// then the value, padded to 4 bytes.
func eachAttribute(b []byte, visit func(kind uint16, value []byte) error) error {
	const head = 4
	const kindMask = 0x3fff // two bits are flags (NLA_TYPE_MASK)
	for len(b) >= head {
		length := int(binary.NativeEndian.Uint16(b))
		if length < head || length > len(b) {
			return fmt.Errorf("read sock_diag answer: an attribute of %d bytes in %d", length, len(b))
		}
		if err := visit(binary.NativeEndian.Uint16(b[2:])&kindMask, b[head:length]); err != nil {
			return err
		}
		b = b[min((length+3)&^3, len(b)):]
	}
	return nil
}

func untilZero(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
