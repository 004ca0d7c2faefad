package meter

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
)

// diagAnswer is an answer of sock_diag for a connection of 10.0.0.1:5001 to
// 10.0.0.2:443, or of the same mapped into IPv6.
func diagAnswer(v6 bool) []byte {
	b := make([]byte, diagMessageLength)
	b[0], b[1] = 2, 1
	binary.BigEndian.PutUint16(b[4:], 5001)
	binary.BigEndian.PutUint16(b[6:], 443)
	copy(b[8:], []byte{10, 0, 0, 1})
	copy(b[24:], []byte{10, 0, 0, 2})
	if v6 {
		b[0] = 10
		copy(b[8:], []byte{10: 0xff, 11: 0xff, 12: 10, 15: 1})
		copy(b[24:], []byte{10: 0xff, 11: 0xff, 12: 10, 15: 2})
	}
	binary.NativeEndian.PutUint32(b[44:], 0x11223344)
	binary.NativeEndian.PutUint32(b[48:], 0x5)
	info := make([]byte, 248) // as long as Linux 6.18 has it
	for at, v := range map[int]uint32{16: 1448, 68: 24, 80: 316, 100: 45} {
		binary.NativeEndian.PutUint32(info[at:], v)
	}
	for at, v := range map[int]uint64{120: 50e6, 128: 3} {
		binary.NativeEndian.PutUint64(info[at:], v)
	}
	b = append(b, attribute(4, []byte("cubic\x00"))...)
	return append(b, attribute(diagInfo, info)...)
}

func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func TestSockDiagAnswerIsReadInBothIPVersions(t *testing.T) {
	want := Socket{
		Local: netip.MustParseAddrPort("10.0.0.1:5001"), Remote: netip.MustParseAddrPort("10.0.0.2:443"),
		Cookie: 0x5_11223344, RTT: 24_000, MSS: 1448, Cwnd: 316, TotalRetrans: 45, BytesAcked: 50e6, BytesReceived: 3,
	}
	equalAddrs := cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
	for _, v6 := range []bool{false, true} {
		got := must.Get(parseSocket(diagAnswer(v6)))(t)
		if d := cmp.Diff(want, got, equalAddrs); d != "" {
			t.Errorf("mapped into IPv6 %v: %s", v6, d)
		}
	}
}

func TestSockDiagAnswerThatIsCutIsAnError(t *testing.T) {
	whole := diagAnswer(false)
	for _, n := range []int{0, 71, 72, 75, 90, len(whole) - 1} {
		if _, err := parseSocket(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(whole))
		}
	}
	short := append(whole[:diagMessageLength:diagMessageLength], attribute(diagInfo, make([]byte, 104))...)
	if _, err := parseSocket(short); err == nil {
		t.Error("the TCP_INFO of Linux 2.6 was accepted")
	}
}
