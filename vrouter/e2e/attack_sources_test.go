package e2e

import (
	"net/netip"
	"testing"

	"windtunnel/vrouter/model"
)

// A node can write any prefix into allow_sources of its ports. Even then it must not send
// with the addresses of other nodes' ports.
func TestFurtherPrefixesDoNotContainAddressesOfOtherPorts(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{nodes: 3, bare: 1})
	for _, encap := range encaps {
		b.run(string(encap), func(t *testing.T) {
			x, y, z := b.threePorts(encap, model.L3)
			for i := range b.state.Ports {
				if b.state.Ports[i].Name == "z" {
					b.state.Ports[i].AllowSources = subnets("0.0.0.0/0")
				}
			}
			b.up()
			heard := x.hearing(t, 7777)
			for _, c := range []struct {
				name     string
				from     netip.Addr
				delivers bool
			}{
				{"the port's address", z.ip(4), true},
				{"an address without a port", netip.MustParseAddr("192.0.2.9"), true},
				{"the address of another node's port", y.ip(4), false},
				{"the address of the receiver", x.ip(4), false},
			} {
				forgeries[encap].send(t, b.nodes[2], b.nodes[0].v4,
					udpFrame(t, model.RouterMAC, model.RouterMAC, c.from, x.ip(4), 7777, []byte("hello")))
				if got := heard(c.delivers); got != c.delivers {
					t.Errorf("from %s: delivered %v, want %v: %v", c.name, got, c.delivers, b.nodes[0].drops())
				}
			}
		})
	}
}
