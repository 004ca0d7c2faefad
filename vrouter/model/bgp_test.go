package model

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

func TestBGPIsChecked(t *testing.T) {
	node := func(change func(*Node)) func(*State) {
		return func(s *State) {
			s.Nodes[0].BGP = &BGP{ASN: 64512, RouterID: netip.MustParseAddr("192.0.2.1"), Neighbors: []Neighbor{{Address: netip.MustParseAddr("192.0.2.254")}}}
			change(&s.Nodes[0])
		}
	}
	must.Succeed(t, edited(node(func(*Node) {})).Validate())
	name := edited(node(func(*Node) {})).Nodes[0].Name
	cases := []refused{
		{"no AS number", node(func(n *Node) { n.BGP.ASN = 0 }), "asn: 0 is not an AS number; write one such as 64512"},
		{"an IPv6 router id", node(func(n *Node) { n.BGP.RouterID = netip.MustParseAddr("fd00::1") }), "router_id: it must be an IPv4 address, such as an underlay address of the node"},
		{"only direct", node(func(n *Node) { n.Encapsulations = []Encapsulation{Direct} }), "the node offers no tunnel to other routers; add vxlan, mpls-udp or mpls-gre to its encapsulations"},
		{"an unknown family", node(func(n *Node) { n.BGP.Families = []BGPFamily{"ipv4"} }), `families: "ipv4" is not a family; write one of vpnv4, vpnv6, evpn`},
		{"a family twice", node(func(n *Node) { n.BGP.Families = []BGPFamily{EVPN, EVPN} }), "families: evpn is listed twice; remove one"},
		{"no neighbours", node(func(n *Node) { n.BGP.Neighbors = nil }), "neighbors: at least one is required, such as {address: 192.0.2.254}"},
		{"a neighbour twice", node(func(n *Node) { n.BGP.Neighbors = append(n.BGP.Neighbors, n.BGP.Neighbors[0]) }), "neighbors: address: 192.0.2.254 is listed twice; remove one"},
		{"a multicast neighbour", node(func(n *Node) { n.BGP.Neighbors[0].Address = netip.MustParseAddr("224.0.0.5") }), "neighbors: address: 224.0.0.5 cannot be the address of a router; write a unicast one such as 192.0.2.254"},
		{"its own address", node(func(n *Node) { n.BGP.Neighbors[0].Address = n.Underlay[0] }), "neighbors: address: 192.0.2.1 is the node's own address"},
		{"a long password", node(func(n *Node) { n.BGP.Neighbors[0].Password = strings.Repeat("x", 81) }), "neighbor 192.0.2.254: password: it has 81 characters, but at most 80 are allowed"},
		{"too short an interval of BFD", node(func(n *Node) { n.BGP.Neighbors[0].BFD = 1 }), "neighbor 192.0.2.254: bfd: 1ns is not from 10ms to 10s"},
		{"an encapsulation that the node does not offer", node(func(n *Node) {
			n.Encapsulations, n.BGP.Neighbors[0].Encapsulation = []Encapsulation{VXLAN}, MPLSoGRE
		}), `neighbor 192.0.2.254: encapsulation: "mpls-gre" is not a tunnel that the node offers; write one of vxlan`},
	}
	for i := range cases {
		cases[i].want = fmt.Sprintf("node %q: bgp: %s", name, cases[i].want)
	}
	check(t, append(cases, refused{"the router id of another node", func(s *State) {
		node(func(*Node) {})(s)
		s.Nodes[1].BGP = s.Nodes[0].BGP
	}, `node "b": bgp: router_id: 192.0.2.1 is already used by node "a"; choose another`}))
}
