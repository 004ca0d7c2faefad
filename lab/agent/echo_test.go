package agent

import (
	"encoding/binary"
	"testing"
)

// The example of RFC 1071, section 3.
func TestChecksumIsThatOfRFC1071(t *testing.T) {
	if got := checksum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}); got != ^uint16(0xddf2) {
		t.Errorf("checksum = %#04x, want %#04x", got, ^uint16(0xddf2))
	}
}

func TestAMessageWithItsChecksumSumsToZero(t *testing.T) {
	for _, payload := range []int{0, 1, 56, 1472} {
		if got := checksum(echoMessage(false, 7, payload)); got != 0 {
			t.Errorf("payload %d: checksum over the message = %#04x, want 0", payload, got)
		}
	}
}

// reply makes what a raw socket receives for a request.
func reply(v6 bool, seq uint16, payload int) []byte {
	m := echoMessage(v6, seq, payload)
	if v6 {
		m[0] = echoReply6
		return m
	}
	m[0] = echoReply4
	ip := make([]byte, 20)
	ip[0] = 0x45
	return append(ip, m...)
}

func TestOnlyTheAnswerToOurRequestIsAReply(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		if !isReply(reply(v6, 3, 56), v6, 3, 56) {
			t.Errorf("v6 %v: the reply is not recognised", v6)
		}
		other := reply(v6, 3, 56)
		binary.BigEndian.PutUint16(other[len(other)-56-4:], 1)
		for name, b := range map[string][]byte{
			"another sequence number": reply(v6, 4, 56),
			"another length":          reply(v6, 3, 55),
			"another identifier":      other,
			"nothing":                 nil,
			"cut short":               reply(v6, 3, 56)[:10],
		} {
			if isReply(b, v6, 3, 56) {
				t.Errorf("v6 %v: %s is taken for the reply", v6, name)
			}
		}
	}
}

func FuzzIsReply(f *testing.F) {
	f.Add(reply(false, 1, 8), false)
	f.Add(reply(true, 1, 8), true)
	f.Fuzz(func(t *testing.T, b []byte, v6 bool) { isReply(b, v6, 1, 8) })
}
