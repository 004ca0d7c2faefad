package e2e

import (
	"fmt"
	"net/netip"
	"testing"

	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/model"
)

// TestAWorkloadForwardsFromTunnelToTunnel: a firewall or other service on one node has a
// port in each of two networks. It forwards between workloads on two other nodes.
func TestAWorkloadForwardsFromTunnelToTunnel(t *testing.T) {
	t.Parallel()
	for offload, v6 := range map[string]bool{"none": false, "tunnel": true} { // both values of each
		t.Run(fmt.Sprintf("%s/underlay-v6=%v", offload, v6), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, options{nodes: 3, offload: offload})
			for _, encap := range encaps {
				b.run(string(encap), func(t *testing.T) {
					b.state.Nodes = b.nodesOf(v6, encap)
					for i, name := range []string{"red", "blue"} {
						n := i + 1
						b.state.Networks = append(b.state.Networks, model.Network{Name: name, Tenant: name, ID: uint32(n), VNI: uint32(1000 + n), Subnets: subnets(fmt.Sprintf("10.%d.0.0/16", n), fmt.Sprintf("fd00:%d::/64", n))})
					}
					x, y := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "blue", 2, "10.2.0.10", "fd00:2::10")
					service := b.workload("service", "red", 1, "10.1.0.5", "fd00:1::5").port
					inBlue := service
					inBlue.Name, inBlue.Network, inBlue.MAC[1], inBlue.IPs, inBlue.Attach.Interface = "service-blue", "blue", 9, addresses("10.2.0.5", "fd00:2::5"), "eth1"
					b.state.Ports[len(b.state.Ports)-1].AllowSources = subnets("10.2.0.0/16", "fd00:2::/64")
					inBlue.AllowSources = subnets("10.1.0.0/16", "fd00:1::/64")
					b.state.Ports = append(b.state.Ports, inBlue)
					for _, p := range []string{"10.2.0.0/16", "fd00:2::/64"} {
						b.state.Routes = append(b.state.Routes, model.Route{Network: "red", Prefix: netip.MustParsePrefix(p), Via: []model.Via{{Port: service.Name}}})
					}
					for _, p := range []string{"10.1.0.0/16", "fd00:1::/64"} {
						b.state.Routes = append(b.state.Routes, model.Route{Network: "blue", Prefix: netip.MustParsePrefix(p), Via: []model.Via{{Port: inBlue.Name}}})
					}
					b.up()
					testprogram.Output(t, "ip netns exec "+service.Attach.Netns+" sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
					for _, version := range []int{4, 6} {
						for _, ends := range [][2]*workload{{x, y}, {y, x}} {
							checkTransfer(ends[0], ends[1], version, 8<<20)
						}
					}
				})
			}
		})
	}
}
