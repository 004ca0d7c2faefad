package fib_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

const state = `nodes:
  - {name: a, underlay: [192.0.2.1], encapsulations: [mpls-udp]}
  - {name: b, underlay: [192.0.2.2], encapsulations: [mpls-udp]}
networks:
  - {name: red, id: 7, subnets: [10.1.0.0/16]}
ports:
  - {name: web, network: red, node: a, mac: "02:00:00:00:00:0a", ips: [10.1.0.10]}
  - {name: db, network: red, node: b, mac: "02:00:00:00:00:0b", ips: [10.1.0.11]}
`

// Compile makes the tables of node a from the desired state of two nodes. The port on node a is a vif. The
// port on node b is a route into a tunnel, with the network's label 16 + 2·7 = 30. Node a looks up packets
// with this label in the network's VRF.
func ExampleCompile() {
	s, err := model.Parse("state.yaml", []byte(state))
	if err != nil {
		fmt.Println(err)
		return
	}
	facts := fib.Facts{
		Ports: map[string]fib.PortFact{"web": {Ifindex: 12, Peer: true}},
		Way: func(source, destination netip.Addr) (paths []layout.Path, mtu int) {
			return []layout.Path{layout.PathOf(source, destination, destination, 3)}, 1500 // on the same link, by the device with ifindex 3
		},
	}
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	t, err := fib.Compile(s.Slice("a"), "a", facts, &fib.IDs{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for ifindex, v := range t.Vifs {
		fmt.Printf("vif %d (%s): ifindex %d, vrf %d, MTU %d bytes\n", v.ID, t.Ports[v.ID], ifindex, v.VRF, v.MTU)
	}
	all := t.All() // with the routes to ports on other nodes
	byPrefix := func(a, b fib.RouteKey) int { return a.Prefix.Compare(b.Prefix) }
	for _, key := range slices.SortedFunc(maps.Keys(all.Routes), byPrefix) {
		r := all.Routes[key]
		fmt.Printf("route vrf %d %s: nexthop %d (%s), label %d\n", key.VRF, key.Prefix, r.Nexthop, t.Names[r.Nexthop], r.Label)
	}
	for label, target := range t.ILM {
		fmt.Printf("label %d: nexthop %d (%s)\n", label, target.Nexthop, t.Names[target.Nexthop])
	}
	// Output:
	// vif 1 (web): ifindex 12, vrf 7, MTU 1468 bytes
	// route vrf 7 10.1.0.1/32: nexthop 3 (receive red), label 0
	// route vrf 7 10.1.0.10/32: nexthop 4 (port web), label 0
	// route vrf 7 10.1.0.11/32: nexthop 1 (tunnel b mpls-udp), label 30
	// label 30: nexthop 2 (vrf red)
}
