package agent

import (
	"testing"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"windtunnel/internal/must"
)

// reply returns an ICMP echo reply as the socket receives it.
func reply(t testing.TB, v6 bool, id, seq, payload int) []byte {
	t.Helper()
	m := icmp.Message{Type: ipv4.ICMPTypeEchoReply, Body: &icmp.Echo{ID: id, Seq: seq, Data: make([]byte, payload)}}
	if v6 {
		m.Type = ipv6.ICMPTypeEchoReply
	}
	return must.Get(m.Marshal(nil))(t)
}

func TestOnlyTheAnswerToOurRequestIsAReply(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		if !isReply(reply(t, v6, echoID, 3, 56), v6, 3, 56) {
			t.Errorf("v6 %v: the reply is not recognised", v6)
		}
		for name, b := range map[string][]byte{
			"another sequence number": reply(t, v6, echoID, 4, 56),
			"another length":          reply(t, v6, echoID, 3, 55),
			"another identifier":      reply(t, v6, 1, 3, 56),
			"another IP version":      reply(t, !v6, echoID, 3, 56),
			"nothing":                 nil,
			"cut short":               reply(t, v6, echoID, 3, 56)[:6],
		} {
			if isReply(b, v6, 3, 56) {
				t.Errorf("v6 %v: %s is taken for the reply", v6, name)
			}
		}
	}
}

func FuzzIsReply(f *testing.F) {
	f.Add(reply(f, false, echoID, 1, 8), false)
	f.Add(reply(f, true, echoID, 1, 8), true)
	f.Fuzz(func(t *testing.T, b []byte, v6 bool) { isReply(b, v6, 1, 8) })
}
