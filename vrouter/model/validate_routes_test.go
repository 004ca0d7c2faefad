package model

import (
	"net/netip"
	"testing"
)

func TestRoutesAreChecked(t *testing.T) {
	route := func(r Route) func(*State) {
		return func(s *State) { s.Routes = append(s.Routes, r) }
	}
	to := func(prefix string, via ...Via) func(*State) {
		return route(Route{Network: "red", Prefix: netip.MustParsePrefix(prefix), Via: via})
	}
	web1 := Via{Port: "web1"}
	check(t, []refused{
		{"of a network that is nearly there", route(Route{Network: "reed", Prefix: prefixes("10.9.0.0/16")[0], Discard: true}), `route "reed 10.9.0.0/16": network: there is no network "reed"; did you mean "red"?`},
		{"in a network that bridges", func(s *State) {
			s.Networks = append(s.Networks, Network{Name: "lan", ID: 8, Forwarding: L2})
			s.Routes = append(s.Routes, Route{Network: "lan", Prefix: prefixes("10.9.0.0/16")[0], Discard: true})
		}, `route "lan 10.9.0.0/16": network: "lan" only bridges; make it l3 or l2l3`},
		{"without a prefix", route(Route{Network: "red", Discard: true}), `route "red invalid Prefix": prefix: an empty prefix; write one such as 10.1.0.0/16`},
		{"with more bits", to("10.9.0.1/16", web1), `route "red 10.9.0.1/16": prefix: 10.9.0.1/16 has host bits set; did you mean 10.9.0.0/16?`},
		{"IPv4 written as IPv6", to("::ffff:10.9.0.0/112", web1), `route "red ::ffff:10.9.0.0/112": prefix: ::ffff:10.9.0.0/112 is IPv4 written as IPv6; write it as IPv4`},
		{"another route's prefix", to("192.168.0.0/16", web1), `route "red 192.168.0.0/16": prefix: route "red 192.168.0.0/16" already leads to 192.168.0.0/16; keep one, or list all next hops in the via of one route`},
		{"a prefix behind a gateway", to("0.0.0.0/0", web1), `route "red 0.0.0.0/0": prefix: gateway "mx" already leads to 0.0.0.0/0; keep one, or list all next hops in the via of one route`},
		{"a port's own address", to("10.1.0.5/32", web1), `route "red 10.1.0.5/32": prefix: port "web1" already leads to 10.1.0.5/32; keep one, or list all next hops in the via of one route`},
		{"the router's address", to("fd00:1::1/128", web1), `route "red fd00:1::1/128": prefix: the router of subnet fd00:1::/64 already leads to fd00:1::1/128; keep one, or list all next hops in the via of one route`},
		{"no way", to("10.9.0.0/16"), `route "red 10.9.0.0/16": via: needs a port or a gateway, or set discard`},
		{"a way and none", route(Route{Network: "red", Prefix: prefixes("10.9.0.0/16")[0], Via: []Via{web1}, Discard: true}), `route "red 10.9.0.0/16": has both via and discard; keep one`},
		{"seventeen ways", to("10.9.0.0/16", make17(web1)...), `route "red 10.9.0.0/16": via: has 17 next hops, at most 16 are allowed; remove some`},
		{"an empty way", to("10.9.0.0/16", Via{}), `route "red 10.9.0.0/16": via: each next hop must be either a port or a gateway`},
		{"a way that is two", to("10.9.0.0/16", Via{Port: "web1", Gateway: "mx"}), `route "red 10.9.0.0/16": via: each next hop must be either a port or a gateway`},
		{"a port that is nearly there", to("10.9.0.0/16", Via{Port: "web11"}), `route "red 10.9.0.0/16": via: there is no port "web11"; did you mean "web1"?`},
		{"a gateway that is not there", to("10.9.0.0/16", Via{Gateway: "border"}), `route "red 10.9.0.0/16": via: there is no gateway "border"; define it under gateways in the state, or with "vrouter gateway create"`},
		{"a port of another network", func(s *State) {
			s.Networks = append(s.Networks, Network{Name: "blue", ID: 8, Tenant: "other", Subnets: prefixes("10.1.0.0/16")})
			s.Routes = append(s.Routes, Route{Network: "blue", Prefix: prefixes("10.9.0.0/16")[0], Via: []Via{web1}})
		}, `route "blue 10.9.0.0/16": via: port "web1" is in network "red"; choose one of network "blue"`},
		{"a gateway of another network", func(s *State) {
			s.Networks = append(s.Networks, Network{Name: "blue", ID: 8, Tenant: "other", Subnets: prefixes("10.1.0.0/16")})
			s.Routes = append(s.Routes, Route{Network: "blue", Prefix: prefixes("10.9.0.0/16")[0], Via: []Via{{Gateway: "mx"}}})
		}, `route "blue 10.9.0.0/16": via: gateway "mx" does not serve network "blue"; add it to the gateway's networks`},
		{"a gateway without a label for IP", func(s *State) {
			s.Gateways[0].Networks[0].Prefixes, s.Gateways[0].Networks[0].Label = nil, 0
		}, `route "red 192.168.0.0/16": via: gateway "mx" has label 0 for network "red", which is not from 16 to 1048575; it needs the one that it expects on IP packets`},
	})
}

func make17(v Via) []Via {
	all := make([]Via, 17)
	for i := range all {
		all[i] = v
	}
	return all
}

func TestGatewaysAreChecked(t *testing.T) {
	gateway := func(change func(*Gateway)) func(*State) {
		return func(s *State) { change(&s.Gateways[0]) }
	}
	of := func(change func(*GatewayNetwork)) func(*State) {
		return func(s *State) { change(&s.Gateways[0].Networks[0]) }
	}
	// another serves the same network, and so may collide.
	another := func(gn GatewayNetwork) func(*State) {
		return func(s *State) {
			gn.Network, gn.Label, gn.EthernetLabel = "red", 200, 201
			s.Gateways = append(s.Gateways, Gateway{Name: "mx2", Addresses: addrs("192.0.2.10"), Encapsulation: MPLSoGRE, Networks: []GatewayNetwork{gn}})
		}
	}
	check(t, []refused{
		{"no address", gateway(func(g *Gateway) { g.Addresses = nil }), `gateway "mx": addresses: needs one`},
		{"an address that is none", gateway(func(g *Gateway) { g.Addresses = addrs("0.0.0.0") }), `gateway "mx": addresses: 0.0.0.0 cannot be a gateway's address; write a unicast one such as 192.0.2.1`},
		{"a node's address", gateway(func(g *Gateway) { g.Addresses = addrs("192.0.2.2") }), `gateway "mx": addresses: 192.0.2.2 is the address of node "b"; choose another`},
		{"an address twice", gateway(func(g *Gateway) { g.Addresses = addrs("192.0.2.9", "192.0.2.9") }), `gateway "mx": addresses: 192.0.2.9 is listed twice; remove one`},
		{"another gateway's address", func(s *State) {
			s.Gateways = append(s.Gateways, Gateway{Name: "mx2", Addresses: s.Gateways[0].Addresses, Encapsulation: MPLSoGRE})
		}, `gateway "mx2": addresses: 192.0.2.9 is the address of gateway "mx"; choose another`},
		{"no encapsulation", gateway(func(g *Gateway) { g.Encapsulation = "" }), `gateway "mx": encapsulation: "" is not known; write mpls-udp, mpls-gre or vxlan`},
		{"a gateway with direct", gateway(func(g *Gateway) { g.Encapsulation = Direct }), `gateway "mx": encapsulation: direct is only for packets between nodes; write mpls-udp, mpls-gre or vxlan`},
		{"a group's MAC", gateway(func(g *Gateway) { g.Encapsulation, g.MAC = VXLAN, MAC{3} }), `gateway "mx": mac: 03:00:00:00:00:00 is a multicast address; write the MAC of the gateway's router`},
		{"a network twice", gateway(func(g *Gateway) { g.Networks = append(g.Networks, g.Networks[0]) }), `gateway "mx": networks: "red" is listed twice; merge the two entries`},
		{"a network that is nearly there", gateway(func(g *Gateway) { g.Networks = append(g.Networks, GatewayNetwork{Network: "rred"}) }), `gateway "mx": networks: there is no network "rred"; did you mean "red"?`},
		{"a reserved label", of(func(n *GatewayNetwork) { n.Label = 15 }), `gateway "mx": network "red": label: 15 is not from 16 to 1048575; it needs the one that the gateway expects on IP packets`},
		{"a label of 21 bits", of(func(n *GatewayNetwork) { n.Label = 1 << 20 }), `gateway "mx": network "red": label: 1048576 is not from 16 to 1048575; it needs the one that the gateway expects on IP packets`},
		{"no label for Ethernet", of(func(n *GatewayNetwork) { n.EthernetLabel = 0 }), `gateway "mx": network "red": ethernet_label: 0 is not from 16 to 1048575; it needs the one that the gateway expects on Ethernet frames`},
		{"a VNI of 25 bits", func(s *State) {
			s.Gateways[0].Encapsulation, s.Gateways[0].Networks[0].VNI = VXLAN, 1<<24
		}, `gateway "mx": network "red": vni: 16777216 is larger than 16777215`},
		{"a prefix with more bits", of(func(n *GatewayNetwork) { n.Prefixes = prefixes("10.9.0.1/16") }), `gateway "mx": network "red": prefixes: 10.9.0.1/16 has host bits set; did you mean 10.9.0.0/16?`},
		{"a prefix of two gateways", another(GatewayNetwork{Prefixes: prefixes("0.0.0.0/0")}), `gateway "mx2": network "red": prefixes: gateway "mx" already leads to 0.0.0.0/0; keep one, or list all next hops in the via of one route`},
		{"a prefix twice", of(func(n *GatewayNetwork) { n.Prefixes = prefixes("10.9.0.0/16", "10.9.0.0/16") }), `gateway "mx": network "red": prefixes: gateway "mx" already leads to 10.9.0.0/16; keep one, or list all next hops in the via of one route`},
		{"a prefix that a route leads to", of(func(n *GatewayNetwork) { n.Prefixes = prefixes("192.168.0.0/16") }), `route "red 192.168.0.0/16": prefix: gateway "mx" already leads to 192.168.0.0/16; keep one, or list all next hops in the via of one route`},
		{"a port's address", of(func(n *GatewayNetwork) { n.Prefixes = prefixes("10.1.0.5/32") }), `gateway "mx": network "red": prefixes: port "web1" already leads to 10.1.0.5/32; keep one, or list all next hops in the via of one route`},
		{"the router's address", of(func(n *GatewayNetwork) { n.Prefixes = prefixes("10.1.0.1/32") }), `gateway "mx": network "red": prefixes: the router of subnet 10.1.0.0/16 already leads to 10.1.0.1/32; keep one, or list all next hops in the via of one route`},
		{"a port's MAC", of(func(n *GatewayNetwork) { n.MACs = []MAC{{2, 0, 0, 0, 0, 1}} }), `gateway "mx": network "red": macs: 02:00:00:00:00:01 is already used by port "web1"; remove it`},
		{"a MAC of two gateways", another(GatewayNetwork{MACs: []MAC{{6, 0, 0, 0, 0, 1}}}), `gateway "mx2": network "red": macs: 06:00:00:00:00:01 is already used by gateway "mx"; remove it`},
		{"a group's MAC behind it", of(func(n *GatewayNetwork) { n.MACs = []MAC{{7, 0, 0, 0, 0, 1}} }), `gateway "mx": network "red": macs: 07:00:00:00:00:01 is a multicast address; list only addresses of devices behind the gateway`},
		{"an empty MAC behind it", of(func(n *GatewayNetwork) { n.MACs = []MAC{{}} }), `gateway "mx": network "red": macs: an empty MAC address; write one such as 02:00:00:00:00:01`},
		{"the router's MAC behind it", of(func(n *GatewayNetwork) { n.MACs = []MAC{RouterMAC} }), `gateway "mx": network "red": macs: 00:00:5e:00:01:00 is the router's; remove it`},
		{"prefixes in a network that bridges", func(s *State) {
			s.Routes, s.Networks[0].Forwarding = nil, L2
		}, `gateway "mx": network "red": prefixes: the network only bridges; make it l3 or l2l3`},
		{"MACs in a network that routes", func(s *State) {
			s.Ports, s.Routes, s.Networks[0].Forwarding = nil, nil, L3
		}, `gateway "mx": network "red": macs and flood: the network only routes; make it l2 or l2l3`},
	})
}
