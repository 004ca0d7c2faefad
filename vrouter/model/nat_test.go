package model

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPoolsAndFloatingAddressesAreChecked(t *testing.T) {
	pool := func(all ...string) func(*State) {
		return func(s *State) { s.Networks[0].NodeAccess, s.Networks[0].NATPool = true, prefixes(all...) }
	}
	floating := func(port int, all ...string) func(*State) {
		return func(s *State) {
			pool("203.0.113.0/28", "2001:db8:77::/64")(s)
			for _, a := range all {
				s.Ports[port].Floating = append(s.Ports[port].Floating, netip.MustParseAddr(a))
			}
		}
	}
	blue := func(n Network) func(*State) {
		return func(s *State) {
			pool("203.0.113.0/28")(s)
			n.Name, n.ID, n.NodeAccess = "blue", 8, true
			s.Networks = append(s.Networks, n)
		}
	}
	check(t, []refused{
		{"without node_access", func(s *State) { s.Networks[0].NATPool = prefixes("203.0.113.0/28") }, `network "red": nat_pool: a pool needs node_access; set node_access, or remove the pool`},
		{"host bits", pool("203.0.113.1/28"), `network "red": nat_pool: 203.0.113.1/28 has host bits set; did you mean 203.0.113.0/28?`},
		{"multicast", pool("224.0.0.0/8"), `network "red": nat_pool: 224.0.0.0/8 is not a prefix of unicast addresses; write one such as 203.0.113.0/28`},
		{"overlap in the pool", pool("203.0.113.0/28", "203.0.113.8/29"), `network "red": nat_pool: 203.0.113.8/29 overlaps another prefix of the pool; remove one`},
		{"overlap with a subnet of the network", pool("10.1.0.0/28"), `network "red": nat_pool: 10.1.0.0/28 overlaps the subnet 10.1.0.0/16 of network "red"; choose addresses outside the networks`},
		{"overlap with a subnet of another tenant", blue(Network{Tenant: "other", Subnets: prefixes("203.0.113.0/24")}), `network "red": nat_pool: 203.0.113.0/28 overlaps the subnet 203.0.113.0/24 of network "blue"; choose addresses outside the networks`},
		{"overlap with another pool", blue(Network{Subnets: prefixes("10.77.0.0/16"), NATPool: prefixes("203.0.113.8/29")}), `network "red": nat_pool: 203.0.113.0/28 overlaps 203.0.113.8/29, the pool of network "blue"; give each network its own addresses`},
		{"address outside the pool", floating(0, "203.0.113.16"), `port "web1": floating: 203.0.113.16 is not in the pool of network "red", which has [203.0.113.0/28 2001:db8:77::/64]; choose an address of the pool, or change the pool with ` + "`vrouter network nat`"},
		{"address of a node's underlay", pool("192.0.2.1/32"), `network "red": nat_pool: 192.0.2.1/32 contains 192.0.2.1, an underlay address of node "a"; choose another pool`},
		{"port without IPv6", func(s *State) {
			floating(0, "2001:db8:77::3")(s)
			s.Ports[0].IPs = s.Ports[0].IPs[:1]
		}, `port "web1": floating: the port has no address of the same family as 2001:db8:77::3; remove the floating address`},
		{"two addresses of a family", floating(0, "203.0.113.3", "203.0.113.4"), `port "web1": floating: 203.0.113.4 is invalid, or the second address of its family; give at most one IPv4 and one IPv6 address`},
		{"address of another port", func(s *State) {
			floating(0, "203.0.113.3")(s)
			s.Ports[1].IPs, s.Ports[1].Floating = append(s.Ports[1].IPs, netip.MustParseAddr("10.1.0.77")), s.Ports[0].Floating
		}, `port "web2": floating: 203.0.113.3 is already used by port "web1"; choose another`},
	})
}

func TestFloatingAddressesAreListedWithTheirNodes(t *testing.T) {
	a := func(text string) netip.Addr { return netip.MustParseAddr(text) }
	ports := []Port{
		{Name: "web", Node: "b", Network: "red", Floating: []netip.Addr{a("203.0.113.9"), a("2001:db8::9")}},
		{Name: "node-1", Node: "a", Network: "red", Floating: []netip.Addr{a("203.0.113.0")}, Attach: Attachment{Host: true}},
		{Name: "db", Node: "a", Network: "red"},
	}
	want := []Floating{{a("203.0.113.0"), "a", "red", "node-1"}, {a("203.0.113.9"), "b", "red", "web"}, {a("2001:db8::9"), "b", "red", "web"}}
	if diff := cmp.Diff(want, FloatingAddresses(ports), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("floating addresses (-want +got):\n%s", diff)
	}
}
