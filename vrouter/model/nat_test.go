package model

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"windtunnel/internal/must"

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
		{"ports without a pool", func(s *State) { s.Networks[0].NATPorts = 1000 }, `network "red": nat_ports: 1000 ports of each node need a nat_pool, and must be 64 to 64512; change nat_ports`},
		{"too few ports", func(s *State) { pool("203.0.113.0/28")(s); s.Networks[0].NATPorts = 63 }, `network "red": nat_ports: 63 ports of each node need a nat_pool, and must be 64 to 64512; change nat_ports`},
		{"too many ports", func(s *State) { pool("203.0.113.0/28")(s); s.Networks[0].NATPorts = 64513 }, `network "red": nat_ports: 64513 ports of each node need a nat_pool, and must be 64 to 64512; change nat_ports`},
		{"address that nodes share", func(s *State) { floating(0, "203.0.113.3")(s); s.Networks[0].NATPorts = 1000 }, `port "web1": floating: nodes share the prefix of 203.0.113.3 (nat_ports of network "red"); choose an address of another prefix of nat_pool, or add a prefix`},
		{"share of a workload", func(s *State) { s.Ports[0].NATSlot = 1 }, `port "web1": nat_slot: only a port that connects a node has one; remove it`},
		{"share of two nodes", func(s *State) {
			pool("203.0.113.0/28")(s)
			s.Networks[0].NATPorts = 1000
			for i, node := range []string{"a", "b"} {
				s.Ports = append(s.Ports, Port{Name: "host-" + node, Network: "red", Node: node, MAC: MAC{2, 0, 0, 0, 9, byte(i)}, IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 1, 9, byte(i)})}, Attach: Attachment{Host: true}, NATSlot: 3})
			}
		}, `port "host-b": nat_slot: 3 is already used by port "host-a"; choose another`},
		{"address of another port", func(s *State) {
			floating(0, "203.0.113.3")(s)
			s.Ports[1].IPs, s.Ports[1].Floating = append(s.Ports[1].IPs, netip.MustParseAddr("10.1.0.77")), s.Ports[0].Floating
		}, `port "web2": floating: 203.0.113.3 is already used by port "web1"; choose another`},
	})
}

// However large the pool and the number of ports are, two nodes never have the same port of one address.
func TestTheSharesOfTwoNodesDoNotOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 38))
	for range 300 {
		n := Network{NATPorts: uint16(64 + r.IntN(64512-63)), NATPool: []netip.Prefix{
			netip.PrefixFrom(netip.MustParseAddr("203.0.113.0"), 24+r.IntN(9)), netip.MustParsePrefix("198.51.100.0/24"),
			netip.PrefixFrom(netip.MustParseAddr("2001:db8:77::"), 112+r.IntN(17)),
		}}
		each, smallest := 64512/int(n.NATPorts), min(32-n.NATPool[0].Bits(), 128-n.NATPool[2].Bits())
		slots := n.NATSlots()
		if want := min(each<<smallest, 65535); int(slots) != want {
			t.Fatalf("pool %v, %d ports: %d shares, want %d", n.NATPool, n.NATPorts, slots, want)
		}
		last := map[netip.Addr]uint16{} // last port that is in use
		for slot := range min(slots, 2000) {
			s := n.NodeShare(Port{NATSlot: slot + 1})
			if len(s.Addresses) != 2 || !n.NATPool[0].Contains(s.Addresses[0]) || !n.NATPool[2].Contains(s.Addresses[1]) || s.FirstPort < 1024 || s.LastPort-s.FirstPort+1 != n.NATPorts || s.LastPort < s.FirstPort {
				t.Fatalf("pool %v, %d ports: share %d is %+v", n.NATPool, n.NATPorts, slot+1, s)
			}
			for _, a := range s.Addresses {
				if s.FirstPort <= last[a] {
					t.Fatalf("pool %v, %d ports: share %d, %+v, has ports up to %d of an earlier share", n.NATPool, n.NATPorts, slot+1, s, last[a])
				}
				last[a] = s.LastPort
			}
		}
		if s := n.NodeShare(Port{NATSlot: slots + 1}); slots < 65535 && len(s.Addresses) > 0 {
			t.Fatalf("pool %v, %d ports: there are %d shares, and another one is %+v", n.NATPool, n.NATPorts, slots, s)
		}
	}
}

func TestFloatingAddressesAreListedWithTheirNodes(t *testing.T) {
	a := func(text string) netip.Addr { return netip.MustParseAddr(text) }
	ports := []Port{
		{Name: "web", Node: "b", Network: "red", Floating: []netip.Addr{a("203.0.113.9"), a("2001:db8::9")}},
		{Name: "node-1", Node: "a", Network: "red", Floating: []netip.Addr{a("203.0.113.0")}, Attach: Attachment{Host: true}},
		{Name: "db", Node: "a", Network: "red"},
	}
	ports = append(ports, Port{Name: "other", Node: "a", Network: "blue", Floating: []netip.Addr{a("203.0.113.5")}})
	f := func(text, node, port string, first, last uint16) Floating {
		return Floating{a(text), node, "red", port, first, last}
	}
	n := Network{Name: "red", NATPool: prefixes("203.0.113.0/32", "203.0.113.8/29", "2001:db8::/64")}
	want := []Floating{f("203.0.113.0", "a", "node-1", 0, 0), f("203.0.113.9", "b", "web", 0, 0), f("2001:db8::9", "b", "web", 0, 0)}
	must.Equal(t, want, n.FloatingAddresses(ports), cmpopts.EquateComparable(netip.Addr{}))
	n.NATPorts, ports[1].Floating, ports[1].NATSlot = 1000, nil, 2
	ports = append(ports, Port{Name: "node-2", Node: "b", Network: "red", NATSlot: 1}) // another node's attachment is unknown
	want = []Floating{
		f("203.0.113.0", "b", "node-2", 1024, 2023), f("203.0.113.0", "a", "node-1", 2024, 3023), f("203.0.113.9", "b", "web", 0, 0),
		f("2001:db8::", "b", "node-2", 1024, 2023), f("2001:db8::", "a", "node-1", 2024, 3023), f("2001:db8::9", "b", "web", 0, 0),
	}
	must.Equal(t, want, n.FloatingAddresses(ports), cmpopts.EquateComparable(netip.Addr{}))
}
