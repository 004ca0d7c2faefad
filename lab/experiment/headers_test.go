package experiment

import (
	"testing"

	"windtunnel/lab/suite"
)

// A datagram has 42 bytes of Ethernet, IPv4 and UDP headers. The system adds its own. Weave puts several datagrams into one frame.
func TestHeadersOfADatagramOnTheFabric(t *testing.T) {
	for name, c := range map[string]struct{ mtu, want, further int }{
		"bridge":             {1500, 42, 0},
		"vrouter-vxlan":      {1450, 42 + 50, 0},
		"vrouter-translated": {1480, 42 + 20, 0},
		"weave":              {1438, 42 + 62, 42 + 14},
	} {
		sc := scenario(name, func(sc *suite.Scenario) { sc.Workload.Kind = suite.UDPStream })
		if got := headers(mustResolve(t, &sc), c.mtu); got != c.want {
			t.Errorf("%s: %d bytes of headers, want %d", name, got, c.want)
		}
		if got := further(mustResolve(t, &sc)); got != c.further {
			t.Errorf("%s: %d bytes of headers of a further packet in a frame, want %d", name, got, c.further)
		}
	}
}
