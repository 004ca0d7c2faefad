package e2e

import (
	"fmt"
	"net/netip"
	"testing"

	"windtunnel/vrouter/model"
)

var encaps = []model.Encapsulation{model.MPLSoGRE, model.MPLSoUDP, model.VXLAN}

// pair is two workloads of one network on two nodes.
func pair(b *bed, forwarding model.Forwarding, v6 bool, encap model.Encapsulation) (x, y *workload) {
	b.state.Nodes = b.nodesOf(v6, encap)
	b.state.Networks = []model.Network{{
		Name: "red", ID: 1, VNI: 1001, Forwarding: forwarding,
		Subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/64")},
	}}
	x = b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	y = b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
	b.up()
	return x, y
}

// Every encapsulation, as IP and as Ethernet payload, over both underlays, with
// superpackets and with software GSO, carries every byte unchanged both ways.
func TestBulkTransfersArriveIntact(t *testing.T) {
	for _, offload := range []string{"none", "tcp", "tunnel"} {
		t.Run(offload, func(t *testing.T) {
			t.Parallel()
			b := sharedBed(t, options{offload: offload})
			for _, encap := range encaps {
				for _, forwarding := range []model.Forwarding{model.L3, model.L2} {
					for _, v6 := range []bool{false, true} {
						if v6 && offload == "tcp" {
							continue // the other two span it
						}
						b.run(fmt.Sprintf("%s/%s/underlay-v6=%v", encap, forwarding, v6), func(t *testing.T) {
							x, y := pair(b, forwarding, v6, encap)
							for _, version := range []int{4, 6} {
								n := bulk
								if version == 6 || v6 {
									n = bulk / 4
								}
								if err := transfer(x, y, version, n); err != nil {
									t.Errorf("IPv%d, a to b: %v", version, err)
								}
								if err := transfer(y, x, version, n); err != nil {
									t.Errorf("IPv%d, b to a: %v", version, err)
								}
							}
						})
					}
				}
			}
		})
	}
}

// Datagrams from one byte to the largest, most of them in fragments.
func TestDatagramsOfEverySizeComeBack(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	for _, encap := range encaps {
		b.run(string(encap), func(t *testing.T) {
			x, y := pair(b, model.L3, false, encap)
			for _, version := range []int{4, 6} {
				for _, n := range []int{1, 64, 1000, 1400, 1473, 4096, 9000, 32768, 65000} {
					if err := datagram(x, y, version, n); err != nil {
						t.Errorf("IPv%d: %v", version, err)
					}
				}
			}
		})
	}
}
