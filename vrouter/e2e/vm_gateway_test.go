package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/kerneltest"
	"windtunnel/vrouter/model"
)

// gatewayModules are the kernel modules of a router with MPLS over GRE and UDP, each after those that it needs.
var gatewayModules = append(kerneltest.CardModules, "drivers/net/vrf", "net/ipv4/ip_tunnel", "net/ipv4/gre", "net/ipv4/ip_gre", "net/ipv4/tunnel4", "net/ipv4/ipip",
	"net/ipv4/udp_tunnel", "net/ipv6/ip6_udp_tunnel", "net/ipv4/fou", "net/mpls/mpls_router", "net/mpls/mpls_iptunnel", "net/mpls/mpls_gso")

// gatewayScript makes a kernel with MPLS the router between the node 172.30.0.1 and the device eth1 with the VRF
// vpn. It receives label 300 over GRE, and 301 over UDP. It sends label 18 over GRE, and 20 over UDP.
const gatewayScript = `
ip link set lo up
ip link add vpn type vrf table 10
ip link set vpn up
ip link set eth1 master vpn up
ip address add 10.9.0.1/24 dev eth1
ip address add fd00:9::1/64 dev eth1 nodad
ip address add 172.30.0.8/24 dev eth0
ip address add 172.30.0.9/24 dev eth0
ip link set eth0 up
ip link add gre1 type gre local 172.30.0.8 remote 172.30.0.1 ttl 64
ip fou add port 6635 ipproto 137
ip link add udp1 type ipip mode mplsip local 172.30.0.9 remote 172.30.0.1 ttl 64 encap fou encap-sport auto encap-dport 6635 noencap-csum
ip link set gre1 master vpn up
ip link set udp1 master vpn up
busybox sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.mpls.platform_labels=1048575 net.mpls.conf.gre1.input=1 net.mpls.conf.udp1.input=1
ip -f mpls route add 300 dev vpn
ip -f mpls route add 301 dev vpn
ip route add vrf vpn 10.1.0.0/16 encap mpls 18 dev gre1
ip -6 route add vrf vpn fd00:1::/64 encap mpls 18 dev gre1
ip route add vrf vpn 10.2.0.0/16 encap mpls 20 dev udp1
ip -6 route add vrf vpn fd00:2::/64 encap mpls 20 dev udp1
`

// Debian's kernel, in a virtual machine, is the gateway of a node by MPLS over GRE and over UDP. Its labels are
// routes that a person wrote. Then its link to the host behind it gets a smaller MTU. At the end, the node learns
// the labels of the gateway by BGP.
func TestLinuxWithMPLSIsAGateway(t *testing.T) {
	must.Long(t)
	if kerneltest.In() {
		for line := range strings.Lines(strings.TrimSpace(gatewayScript)) {
			testprogram.Output(t, "/bin/"+line)
		}
		kerneltest.AwaitHost(t)
		testprogram.Output(t, "/bin/ip link set eth1 mtu 1300")
		kerneltest.AwaitHost(t)
		return
	}
	b := bgpBed(t, 2, 1)
	out := &workload{bed: b, ns: b.sw, port: model.Port{Name: "outside", Attach: model.Attachment{Netns: b.name + "-sw"}, IPs: addresses("10.9.0.2", "fd00:9::2")}}
	b.tap(b.sw, "underlay")
	b.tap(b.sw, "eth0") // of the host behind the gateway
	for _, line := range []string{
		"link set underlay master br up", "link set eth0 up", "address add 10.9.0.2/24 dev eth0", "address add fd00:9::2/64 dev eth0 nodad",
		"route add default via 10.9.0.1", "route add default via fd00:9::1",
	} {
		testprogram.Output(t, "ip -n "+out.port.Attach.Netns+" "+line)
	}
	router := kerneltest.Start(t, kerneltest.Guest{
		Seconds: 300, Megabyte: 1024, Modules: gatewayModules, Programs: []string{"busybox", "ip"}, Namespace: out.port.Attach.Netns,
		Cards: []kerneltest.Card{{Tap: "underlay", MAC: "02:00:00:00:09:00"}, {Tap: "eth0", MAC: "02:00:00:00:09:01"}},
	})
	b.state.Nodes = b.nodesOf(false)[:1]
	var inside []*workload
	for i, encap := range []model.Encapsulation{model.MPLSoGRE, model.MPLSoUDP} {
		network := []string{"red", "blue"}[i]
		b.state.Networks = append(b.state.Networks, model.Network{Name: network, ID: uint32(i + 1), Subnets: subnets(fmt.Sprintf("10.%d.0.0/16", i+1), fmt.Sprintf("fd00:%d::/64", i+1))})
		b.state.Gateways = append(b.state.Gateways, model.Gateway{Name: string(encap), Addresses: addresses(fmt.Sprint("172.30.0.", 8+i)), Encapsulation: encap,
			Networks: []model.GatewayNetwork{{Network: network, Label: uint32(300 + i), Prefixes: subnets("10.9.0.0/24", "fd00:9::/64")}}})
		inside = append(inside, b.workload(network, network, 0, fmt.Sprintf("10.%d.0.10", i+1), fmt.Sprintf("fd00:%d::10", i+1)))
	}
	b.up()
	router.Await()
	for _, offload := range []string{"tunnel", "none"} {
		b.nodes[0].offload(offload)
		for _, x := range inside {
			for _, version := range []int{4, 6} {
				reaches(t, x, out, version)
				for _, size := range []int{1, 1400, 1472, 9000} {
					for _, ends := range [][2]*workload{{x, out}, {out, x}} {
						if err := datagram(ends[0], ends[1], version, size); err != nil {
							t.Errorf("IPv%d from %s to %s: %v", version, ends[0].port.Name, ends[1].port.Name, err)
						}
					}
				}
				checkTransfer(x, out, version, bulk/8)
				checkTransfer(out, x, version, bulk/8)
			}
			largest(t, x, out, 4)
		}
	}
	router.Release()
	router.Await()
	for _, x := range inside {
		for _, version := range []int{4, 6} {
			checkTransfer(x, out, version, bulk/8)
			soon(t, "the workload knows the smaller MTU behind the gateway", func() error {
				routes, err := x.command("ip", "route", "get", out.ip(version).String())
				if err == nil && !strings.Contains(routes, "mtu 1300") {
					err = errors.New(routes)
				}
				return err
			})
		}
	}
	t.Run("labels by BGP", func(t *testing.T) { gatewayByBGP(t, b, inside, out) })
	router.Release()
	router.Wait()
}

// gatewayByBGP checks that the routes that BIRD on another node announces replace those that a person wrote. Their
// next hop is the virtual machine.
func gatewayByBGP(t *testing.T, b *bed, inside []*workload, out *workload) {
	node, speaker := b.nodes[0], b.nodes[1]
	b.state.Gateways = nil
	b.state.Networks[0].Import, b.state.Networks[1].Import = target("64512:1"), target("64512:2")
	b.state.Nodes[0].BGP = &model.BGP{ASN: 64512, RouterID: node.v4, Neighbors: []model.Neighbor{{Address: speaker.v4}}, Families: []model.BGPFamily{model.VPNv4, model.VPNv6}}
	b.apply()
	if rt := node.run("rt", "list"); strings.Contains(rt, "10.9.0.0/24") {
		t.Fatalf("the table has a route to the gateway that is deleted:\n%s", rt)
	}
	routes := func(prefix string) (text string) {
		for i, tunnel := range []int{11, 13} { // MPLS in GRE, MPLS in UDP
			text += fmt.Sprintf("route %s:%d %s via 172.30.0.%d mpls %d { bgp_ext_community.add((rt, 64512, %d)); bgp_ext_community.add((generic, 0x030c0000, %d)); };\n", speaker.v4, i+1, prefix, 8+i, 300+i, i+1, tunnel)
		}
		return text
	}
	startBIRD(t, speaker, fmt.Sprintf(`log stderr all;
router id %s;
vpn4 table vpn4tab;
vpn6 table vpn6tab;
protocol device {}
protocol static { vpn4 { table vpn4tab; }; %s }
protocol static { vpn6 { table vpn6tab; }; %s }
protocol bgp node {
  local %[1]s as 64512;
  neighbor %[4]s as 64512;
  multihop;
  connect retry time 1;
  vpn4 mpls { table vpn4tab; export all; };
  vpn6 mpls { table vpn6tab; export all; extended next hop; };
}
`, speaker.v4, routes("10.9.0.0/24"), routes("fd00:9::/64"), node.v4))
	node.uses("10.9.0.0/24", "fd00:9::/64")
	for _, x := range inside {
		for _, version := range []int{4, 6} {
			reaches(t, x, out, version)
			checkTransfer(x, out, version, bulk/8)
			checkTransfer(out, x, version, bulk/8)
		}
	}
}
