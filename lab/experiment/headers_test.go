package experiment

import (
	"testing"

	"windtunnel/lab/suite"
)

// A datagram has 42 bytes of Ethernet, IPv4 and UDP headers. The system adds its own.
func TestHeadersOfADatagramOnTheFabric(t *testing.T) {
	for name, c := range map[string]struct{ mtu, want int }{
		"bridge":             {1500, 42},
		"vrouter-vxlan":      {1450, 42 + 50},
		"vrouter-translated": {1480, 42 + 20},
	} {
		sc := scenario(name, func(sc *suite.Scenario) { sc.Workload.Kind = suite.UDPStream })
		if got := headers(mustResolve(t, &sc), c.mtu); got != c.want {
			t.Errorf("%s: %d bytes of headers, want %d", name, got, c.want)
		}
	}
}
