package model

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/lists"
	"windtunnel/internal/must"
)

// edited applies a change to a copy of the state that has every field.
func edited(change func(*State)) State {
	s := wholeState()
	change(&s)
	return s
}

func addrs(texts ...string) []netip.Addr {
	return lists.Map(texts, netip.MustParseAddr)
}

func prefixes(texts ...string) []netip.Prefix {
	return lists.Map(texts, netip.MustParsePrefix)
}

// refused is a change of a state and the expected error, one line per problem.
type refused struct {
	what   string
	change func(*State)
	want   string
}

func check(t *testing.T, cases []refused) {
	t.Helper()
	for _, c := range cases {
		err := edited(c.change).Validate()
		if err == nil {
			t.Errorf("%s: is valid", c.what)
		} else if err.Error() != c.want {
			t.Errorf("%s:\n     %s\nwant %s", c.what, err, c.want)
		}
	}
}

func TestTheStateOfTheseTestsIsValid(t *testing.T) {
	must.Succeed(t, wholeState().Validate())
	must.Succeed(t, (State{}).Validate())
}

func TestNamesOfEveryKindAreChecked(t *testing.T) {
	const form = "name: up to 63 letters, digits, dots, dashes and underscores, a letter or digit first"
	long := strings.Repeat("x", 64)
	check(t, []refused{
		{"a node without a name", func(s *State) { s.Nodes = append(s.Nodes, Node{Underlay: addrs("192.0.2.3")}) }, `node "": ` + form},
		{"a network with a space", func(s *State) { s.Networks = append(s.Networks, Network{Name: "a b", ID: 2, Forwarding: L2}) }, `network "a b": ` + form},
		{"a port of 64 letters", func(s *State) { s.Ports[1].Name = long }, `port "` + long + `": ` + form},
		{"a policy with a dash first", func(s *State) { s.Policies = append(s.Policies, Policy{Name: "-a"}) }, `policy "-a": ` + form},
		{"a gateway with a slash", func(s *State) {
			s.Gateways = append(s.Gateways, Gateway{Name: "a/b", Addresses: addrs("192.0.2.7"), Encapsulation: VXLAN})
		}, `gateway "a/b": ` + form},
		{"two nodes of a name", func(s *State) { s.Nodes = append(s.Nodes, Node{Name: "a", Underlay: addrs("192.0.2.3")}) }, `node "a": name: two objects have it; rename one`},
		{"two networks of a name", func(s *State) {
			s.Networks = append(s.Networks, Network{Name: "red", ID: 7, VNI: 7000, Forwarding: L2L3, Subnets: prefixes("10.1.0.0/16")})
		}, "network \"red\": name: two objects have it; rename one\nnetwork \"red\": id: 7 is already used by network \"red\"; choose another\nnetwork \"red\": vni: 7000 is already used by network \"red\"; choose another"},
		{"two ports of a name", func(s *State) { s.Ports[1].Name = "web1" }, `port "web1": name: two objects have it; rename one`},
	})
}

func TestNodesAndSettingsAreChecked(t *testing.T) {
	check(t, []refused{
		{"a prefix of locators with another length", func(s *State) { s.Settings.Locators = netip.MustParsePrefix("fd00:77::/57") }, "settings: locators: fd00:77::/57 is not a unicast IPv6 prefix of at most 56 bits without host bits; write one such as fd00:77::/32"},
		{"a prefix of locators that contains an underlay address", func(s *State) {
			s.Settings.Locators = netip.MustParsePrefix("fd00:77::/32")
			s.Nodes[0].Underlay, s.Nodes[1].Underlay = addrs("192.0.2.1"), addrs("192.0.2.2", "fd00:77:c000:202::1")
		}, `node "b": locator: fd00:77:c000:202::/64 contains the underlay address fd00:77:c000:202::1 of node "b"; choose another prefix`},
		{"VXLAN on MPLSoUDP's port", func(s *State) { s.Settings.VXLANPort = 6635 }, "settings: vxlan_port: 6635 is the port of MPLSoUDP (RFC 7510); choose another, such as 4789"},
		{"an export without a collector", func(s *State) { s.Settings.FlowExport.Idle = Duration(time.Second) }, "settings: flow_export: collector is missing; write the address and UDP port of the collector, such as 192.0.2.9:4739"},
		{"an export to no port", func(s *State) { s.Settings.FlowExport.Collector = Collector{netip.MustParseAddrPort("192.0.2.9:0")} }, "settings: flow_export: collector: 192.0.2.9:0 is not the address and UDP port of a host; write one such as 192.0.2.9:4739 or [2001:db8::9]:4739"},
		{"an export to a group", func(s *State) { s.Settings.FlowExport.Collector = Collector{netip.MustParseAddrPort("[ff05::1]:4739")} }, "settings: flow_export: collector: [ff05::1]:4739 is not the address and UDP port of a host; write one such as 192.0.2.9:4739 or [2001:db8::9]:4739"},
		{"times of an export", func(s *State) {
			s.Settings.FlowExport = FlowExport{Collector{netip.MustParseAddrPort("192.0.2.9:4739")}, Duration(2 * time.Hour), Duration(time.Millisecond)}
		}, "settings: flow_export: active: 2h0m0s is not between 1s and 1h0m0s; choose a duration in this range\nsettings: flow_export: idle: 1ms is not between 1s and 1h0m0s; choose a duration in this range"},
		{"a node without an address", func(s *State) { s.Nodes[1].Underlay = nil }, `node "b": underlay: needs an address by which other nodes reach it`},
		{"a group's address", func(s *State) { s.Nodes[1].Underlay = addrs("224.0.0.1") }, `node "b": underlay: 224.0.0.1 cannot be a node's address; write a unicast one such as 192.0.2.1`},
		{"an address with a zone", func(s *State) { s.Nodes[1].Underlay = addrs("2001:db8::7%eth0") }, `node "b": underlay: 2001:db8::7%eth0 cannot be a node's address; write a unicast one such as 192.0.2.1`},
		{"loopback", func(s *State) { s.Nodes[1].Underlay = addrs("127.0.0.1") }, `node "b": underlay: 127.0.0.1 cannot be a node's address; write a unicast one such as 192.0.2.1`},
		{"IPv4 written as IPv6", func(s *State) { s.Nodes[1].Underlay = addrs("::ffff:192.0.2.2") }, `node "b": underlay: ::ffff:192.0.2.2 cannot be a node's address; write a unicast one such as 192.0.2.1`},
		{"an address of two nodes", func(s *State) { s.Nodes[1].Underlay = addrs("192.0.2.1") }, `node "b": underlay: 192.0.2.1 is already used by node "a"; choose another`},
		{"an address twice", func(s *State) { s.Nodes[1].Underlay = addrs("192.0.2.2", "192.0.2.2") }, `node "b": underlay: 192.0.2.2 is listed twice; remove one`},
		{"five addresses of a family", func(s *State) {
			s.Nodes[1].Underlay = addrs("192.0.2.11", "192.0.2.12", "192.0.2.13", "192.0.2.14", "192.0.2.15", "2001:db8::2")
		}, `node "b": underlay: more than 4 addresses of a family`},
		{"an encapsulation that is not known", func(s *State) { s.Nodes[1].Encapsulations = []Encapsulation{"geneve"} }, `node "b": encapsulations: "geneve" is not known; write direct, mpls-udp, mpls-gre or vxlan`},
		{"an IPv4 prefix as locator", func(s *State) { s.Nodes[1].Locator = netip.MustParsePrefix("192.0.2.0/24") }, `node "b": locator: 192.0.2.0/24 is not a unicast IPv6 prefix of 64 or 80 bits; write one such as fd00:0:0:17::/64`},
		{"a short locator", func(s *State) { s.Nodes[1].Locator = netip.MustParsePrefix("fd00::/48") }, `node "b": locator: fd00::/48 is not a unicast IPv6 prefix of 64 or 80 bits; write one such as fd00:0:0:17::/64`},
		{"a locator of 96 bits", func(s *State) { s.Nodes[1].Locator = netip.MustParsePrefix("fd00::/96") }, `node "b": locator: fd00::/96 is too long: the network needs 16 bits, and an address of a workload 32; write a prefix of 64 or 80 bits, or no locator: then packets take a tunnel`},
		{"the unspecified prefix as locator", func(s *State) { s.Nodes[1].Locator = netip.MustParsePrefix("::/64") }, `node "b": locator: ::/64 is not a unicast IPv6 prefix of 64 or 80 bits; write one such as fd00:0:0:17::/64`},
		{"a multicast locator", func(s *State) { s.Nodes[1].Locator = netip.MustParsePrefix("ff05:1::/64") }, `node "b": locator: ff05:1::/64 is not a unicast IPv6 prefix of 64 or 80 bits; write one such as fd00:0:0:17::/64`},
		{"a link-local locator", func(s *State) { s.Nodes[1].Locator = netip.MustParsePrefix("fe80::/64") }, `node "b": locator: fe80::/64 is not a unicast IPv6 prefix of 64 or 80 bits; write one such as fd00:0:0:17::/64`},
		{"an IPv4-mapped locator", func(s *State) { s.Nodes[1].Locator = netip.MustParsePrefix("::ffff:0:0/80") }, `node "b": locator: ::ffff:0.0.0.0/80 is not a unicast IPv6 prefix of 64 or 80 bits; write one such as fd00:0:0:17::/64`},
		{"a locator around the loopback address", func(s *State) { s.Nodes[1].Locator = netip.MustParsePrefix("::/80") }, `node "b": locator: ::/80 is not a unicast IPv6 prefix of 64 or 80 bits; write one such as fd00:0:0:17::/64`},
		{"an address as locator", func(s *State) { s.Nodes[1].Locator = netip.MustParsePrefix("fd00::1/128") }, `node "b": locator: fd00::1/128 is too long: the network needs 16 bits, and an address of a workload 32; write a prefix of 64 or 80 bits, or no locator: then packets take a tunnel`},
		{"a locator with host bits", func(s *State) { s.Nodes[1].Locator = netip.MustParsePrefix("fd00::1/64") }, `node "b": locator: fd00::1/64 has host bits set; did you mean fd00::/64?`},
		{"a locator of two nodes", func(s *State) {
			s.Nodes[0].Locator, s.Nodes[1].Locator = netip.MustParsePrefix("fd00:1::/64"), netip.MustParsePrefix("fd00:1::/64")
		}, `node "b": locator: fd00:1::/64 overlaps the locator of node "a"; choose another prefix`},
		{"a short locator around a long one", func(s *State) {
			s.Nodes[0].Locator, s.Nodes[1].Locator = netip.MustParsePrefix("fd00:1:0:0:7::/80"), netip.MustParsePrefix("fd00:1::/64")
		}, `node "b": locator: fd00:1::/64 overlaps the locator of node "a"; choose another prefix`},
		{"a long locator in a short one", func(s *State) {
			s.Nodes[0].Locator, s.Nodes[1].Locator = netip.MustParsePrefix("fd00:1::/64"), netip.MustParsePrefix("fd00:1:0:0:7::/80")
		}, `node "b": locator: fd00:1:0:0:7::/80 overlaps the locator of node "a"; choose another prefix`},
		{"a long locator of two nodes", func(s *State) {
			s.Nodes[0].Locator, s.Nodes[1].Locator = netip.MustParsePrefix("fd00:1:0:0:7::/80"), netip.MustParsePrefix("fd00:1:0:0:7::/80")
		}, `node "b": locator: fd00:1:0:0:7::/80 overlaps the locator of node "a"; choose another prefix`},
		{"a locator that contains an underlay address", func(s *State) {
			s.Nodes[0].Underlay, s.Nodes[1].Locator = addrs("192.0.2.1", "fd77:1::7"), netip.MustParsePrefix("fd77:1::/64")
		}, `node "b": locator: fd77:1::/64 contains the underlay address fd77:1::7 of node "a"; choose another prefix`},
		{"a locator that contains a gateway's address", func(s *State) {
			s.Nodes[1].Locator = netip.MustParsePrefix("fd77:1::/64")
			s.Gateways = append(s.Gateways, Gateway{Name: "g", Addresses: addrs("fd77:1::9"), Encapsulation: VXLAN})
		}, `node "b": locator: fd77:1::/64 contains the address fd77:1::9 of gateway "g"; choose another prefix`},
		{"an encapsulation twice", func(s *State) { s.Nodes[1].Encapsulations = []Encapsulation{VXLAN, MPLSoUDP, VXLAN} }, `node "b": encapsulations: vxlan is listed twice; remove one`},
	})
}

func TestNetworksAreChecked(t *testing.T) {
	add := func(n Network) func(*State) {
		return func(s *State) { s.Networks = append(s.Networks, n) }
	}
	subnets := func(texts ...string) func(*State) {
		return func(s *State) {
			s.Networks = append(s.Networks, Network{Name: "blue", ID: 9, Tenant: "other", Subnets: prefixes(texts...)})
		}
	}
	check(t, []refused{
		{"no id", add(Network{Name: "blue", VNI: 5, Forwarding: L2}), `network "blue": id: 0 is not from 1 to 4095, from which its VRF and labels follow`},
		{"an id behind the last label", add(Network{Name: "blue", ID: 4096, Forwarding: L2}), `network "blue": id: 4096 is not from 1 to 4095, from which its VRF and labels follow`},
		{"an id of two", add(Network{Name: "blue", ID: 7, Forwarding: L2}), `network "blue": id: 7 is already used by network "red"; choose another`},
		{"a VNI of two", add(Network{Name: "blue", ID: 8, VNI: 7000, Forwarding: L2}), `network "blue": vni: 7000 is already used by network "red"; choose another`},
		{"a route distinguisher of two", func(s *State) {
			s.Networks = append(s.Networks, Network{Name: "blue", ID: 8, Forwarding: L2, RD: RouteDistinguisher{1: 2, 3: 1, 7: 9}}, Network{Name: "green", ID: 9, Forwarding: L2, RD: RouteDistinguisher{1: 2, 3: 1, 7: 9}})
		}, `network "green": rd: 65536:9 is already used by network "blue"; choose another, or write auto`},
		{"a VNI of 25 bits", add(Network{Name: "blue", ID: 8, VNI: 1 << 24, Forwarding: L2}), `network "blue": vni: 16777216 is not from 1 to 16777215`},
		{"forwarding that is not known", add(Network{Name: "blue", ID: 8, Tenant: "other", Forwarding: "l4", Subnets: prefixes("10.0.0.0/8")}), `network "blue": forwarding: "l4" is not known; write l3, l2 or l2l3`},
		{"routing without a subnet", subnets(), `network "blue": subnets: a network that routes needs one`},
		{"a policy that is not there", add(Network{Name: "blue", ID: 8, Forwarding: L2, Policies: []string{"strict"}}), `network "blue": policies: there is no policy "strict"; define it under policies in the state, or with "vrouter policy create"`},
		{"subnets that overlap", subnets("10.2.0.0/16", "10.2.7.0/24"), `network "blue": subnets: 10.2.7.0/24 overlaps 10.2.0.0/16; change one of them`},
		{"a subnet twice", subnets("fd00:2::/64", "fd00:2::/64"), `network "blue": subnets: fd00:2::/64 overlaps fd00:2::/64; change one of them`},
		{"a subnet with more bits", subnets("10.2.0.1/16"), `network "blue": subnets: 10.2.0.1/16 has host bits set; did you mean 10.2.0.0/16?`},
		{"a subnet of two addresses", subnets("10.2.0.0/31"), `network "blue": subnets: 10.2.0.0/31 is too small for a gateway and a port; use /30 or shorter`},
		{"an IPv6 subnet of one", subnets("fd00:2::1/128"), `network "blue": subnets: fd00:2::1/128 is too small for a gateway and a port; use /126 or shorter`},
		{"a subnet of groups", subnets("239.0.0.0/8"), `network "blue": subnets: 239.0.0.0/8 is not a prefix for workloads; write one such as 10.1.0.0/16`},
		{"a link-local subnet", subnets("fe80::/64"), `network "blue": subnets: fe80::/64 is not a prefix for workloads; write one such as 10.1.0.0/16`},
		{"everything as a subnet", subnets("0.0.0.0/0"), `network "blue": subnets: 0.0.0.0/0 is not a prefix for workloads; write one such as 10.1.0.0/16`},
		{"IPv4 written as IPv6", subnets("::ffff:10.2.0.0/112"), `network "blue": subnets: ::ffff:10.2.0.0/112 is IPv4 written as IPv6; write it as IPv4`},
		{"node_access in a network that only bridges", add(Network{Name: "blue", ID: 8, Forwarding: L2, NodeAccess: true}), `network "blue": node_access: a network that only bridges sends no packets to the node; make it l3 or l2l3`},
		{"dhcp in a network that only bridges", add(Network{Name: "blue", ID: 8, Forwarding: L2, DHCP: true, Subnets: prefixes("10.2.0.0/16")}), `network "blue": dhcp: the DHCP server uses the router's address, and a network that only bridges has no router; make the network l3 or l2l3, or set router for the port of a DHCP server`},
		{"dhcp without an IPv4 subnet", add(Network{Name: "blue", ID: 8, DHCP: true, Subnets: prefixes("fd00:2::/64")}), `network "blue": dhcp: the network has no IPv4 subnet; add one such as 10.1.0.0/16, or remove dhcp`},
		{"dns outside the subnets", add(Network{Name: "blue", ID: 8, Subnets: prefixes("10.2.0.0/16"), DNS: []netip.Addr{netip.MustParseAddr("10.3.0.2")}}), `network "blue": dns: 10.3.0.2 is in no subnet of the network, which has [10.2.0.0/16]; choose an address in one of them, such as the gateway's`},
		{"dns in a network that only bridges", add(Network{Name: "blue", ID: 8, Forwarding: L2, Subnets: prefixes("10.2.0.0/16"), DNS: []netip.Addr{netip.MustParseAddr("10.2.0.2")}}), `network "blue": dns: a network that only bridges sends no packets to the agent; make it l3 or l2l3, or remove dns`},
		{"dns at the broadcast address", add(Network{Name: "blue", ID: 8, Subnets: prefixes("10.2.0.0/16"), DNS: []netip.Addr{netip.MustParseAddr("10.2.255.255")}}), `network "blue": dns: 10.2.255.255 is the first or last address of subnet 10.2.0.0/16; choose another`},
		{"two IPv4 addresses for dns", add(Network{Name: "blue", ID: 8, Subnets: prefixes("10.2.0.0/16"), DNS: []netip.Addr{netip.MustParseAddr("10.2.0.2"), netip.MustParseAddr("10.2.0.3")}}), `network "blue": dns: 10.2.0.3 is the second address of its family; write at most one IPv4 and one IPv6 address`},
		{"dns at the address of a port", func(s *State) { s.Networks[0].DNS = []netip.Addr{s.Ports[0].IPs[0]} }, `port "web1": ips: 10.1.0.5 is the DNS address of network "red"; choose another, or change the network's dns`},
		{"node_access of two tenants to the same addresses", func(s *State) {
			s.Networks[0].NodeAccess = true
			s.Networks = append(s.Networks, Network{Name: "blue", ID: 8, Tenant: "other", NodeAccess: true, Subnets: prefixes("10.1.128.0/17")})
		}, `network "blue": node_access: 10.1.128.0/17 overlaps a subnet of network "red", which has node_access too; change one of them, or remove node_access from one`},
		{"a subnet of the same tenant's", add(Network{Name: "blue", ID: 8, Subnets: prefixes("10.2.0.0/16", "10.1.128.0/17")}), `network "blue": subnets: 10.1.128.0/17 overlaps 10.1.0.0/16 of network "red"; change one of them, or give the networks different tenants`},
		{"a subnet around the same tenant's", add(Network{Name: "blue", ID: 8, Subnets: prefixes("10.0.0.0/8")}), `network "red": subnets: 10.1.0.0/16 overlaps 10.0.0.0/8 of network "blue"; change one of them, or give the networks different tenants`},
		{"a subnet with an underlay address", subnets("192.0.2.0/24"), `network "blue": subnets: 192.0.2.0/24 has node "a"'s underlay address 192.0.2.1; choose another subnet`},
		{"a range of no subnet", add(Network{Name: "blue", ID: 8, Subnets: prefixes("10.2.0.0/24"), Ranges: []Range{{addrs("10.2.0.200")[0], addrs("10.2.1.5")[0]}}}), `network "blue": ranges: 10.2.0.200-10.2.1.5 is not within one of the subnets [10.2.0.0/24]`},
		{"an empty subnet", add(Network{Name: "blue", ID: 8, Subnets: make([]netip.Prefix, 1)}), `network "blue": subnets: an empty prefix; write one such as 10.1.0.0/16`},
	})
	must.Succeed(t, edited(add(Network{Name: "blue", ID: 2000, VNI: 7, Forwarding: L2})).Validate())
	must.Succeed(t, edited(subnets("10.1.0.0/16")).Validate())
}
