package experiment

import (
	"testing"

	"windtunnel/lab/suite"
)

// A datagram has 42 bytes of Ethernet, IPv4 and UDP headers, and the system adds its own headers. A frame of Weave can carry several
// datagrams; each of them has the 42 bytes and 14 of Weave's.
func TestHeadersOfADatagramOnTheFabric(t *testing.T) {
	for name, c := range map[string]struct{ mtu, want, perPacket int }{
		"bridge":             {1500, 42, 0},
		"vrouter-vxlan":      {1450, 42 + 50, 0},
		"vrouter-translated": {1480, 42 + 20, 0},
		"weave":              {1438, 42 + 62, 42 + 14},
	} {
		sc := scenario(name, func(sc *suite.Scenario) { sc.Workload.Kind = suite.UDPStream })
		if got := headers(mustResolve(t, &sc), c.mtu); got != c.want {
			t.Errorf("%s: %d bytes of headers, want %d", name, got, c.want)
		}
		if got := perPacket(mustResolve(t, &sc)); got != c.perPacket {
			t.Errorf("%s: %d bytes of headers for each packet in a frame, want %d", name, got, c.perPacket)
		}
	}
	for want, w := range map[int64]suite.Workload{
		64: {Kind: suite.UDPStream, Buffer: 64},
		0:  {Kind: suite.UDPStream, Buffer: suite.LargestIMIX, IMIX: true},
	} {
		if got := payload(w); got != want {
			t.Errorf("%+v: the payload of each datagram is %d bytes, want %d", w, got, want)
		}
	}
	if got := payload(suite.Workload{Kind: suite.TCPStream, Buffer: 64}); got != 0 {
		t.Errorf("a TCP stream has a datagram payload of %d bytes, want 0", got)
	}
}
